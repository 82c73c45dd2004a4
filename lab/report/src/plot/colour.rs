//! Colours and shapes that distinguish series.

/// The palette of Okabe and Ito ("Color Universal Design", 2008), which readers with any colour vision can
/// distinguish. The palette's yellow is left out, because yellow lines on white are hard to see.
pub(crate) const PALETTE: [(u8, u8, u8); 7] =
    [(0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233), (230, 159, 0), (0, 0, 0)];

/// Shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Triangle,
    Cross,
}

const SHAPES: [Shape; 3] = [Shape::Circle, Shape::Triangle, Shape::Cross];

/// The colour and shape of the series with this index. The combinations repeat after 21 series.
pub(super) fn look(index: usize) -> ((u8, u8, u8), Shape) {
    (PALETTE[index % PALETTE.len()], SHAPES[index / PALETTE.len() % SHAPES.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_21_series_look_different() {
        let looks: Vec<_> = (0..21).map(look).collect();
        for (index, look) in looks.iter().enumerate() {
            assert!(!looks[..index].contains(look), "{index}");
        }
        assert_eq!(look(21), look(0));
    }
}
