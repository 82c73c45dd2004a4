//! Measures the cost of data that another core has in its own caches.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use pageset_core::{MigrateType, Order};
use pageset_measure::pageops::median;

use super::rig::{fixed, run};
use super::shape::Shape;
use crate::load::{Body, ChannelSpec};
use crate::{Access, ChannelId, Fill, Message, Target};

/// Number of times that two cores pass the same pages back and forth.
const ROUNDS: usize = 101;
/// Three numbers of pages that two cores pass back and forth together. These pages take a quarter, half, or
/// all of the 208 KiB that a socket holds. The measured cost is the average of the costs with the three
/// numbers of pages. The time for a page depends on the number of pages, because pages that the other core
/// has just written take longest. On a virtual machine with 2 Xeon CPUs, for example, copying a page took
/// 1130 ns with at most 160 KiB of pages, and 430 ns with more pages.
const PAGES: [usize; 3] = [13, 26, 52];
const THERE: ChannelId = ChannelId(0);
const BACK: ChannelId = ChannelId(1);

/// Time of copying 4 KiB in place, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyCosts {
    /// Time of copying a page that the core's own caches hold.
    pub(super) near: f64,
    /// Time of copying a page that another core wrote last.
    pub(super) from_core: f64,
}

/// Measures the costs of copying with two cores that copy the same pages alternately. Returns `None` if there
/// is only one CPU.
pub(super) fn copy(shape: &Shape) -> Result<Option<CopyCosts>> {
    if shape.cpus < 2 {
        return Ok(None);
    }
    let mut average = CopyCosts { near: 0.0, from_core: 0.0 };
    for pages in PAGES {
        let CopyCosts { near, from_core } = copy_of(pages)?;
        average.near += near / PAGES.len() as f64;
        average.from_core += from_core / PAGES.len() as f64;
    }
    Ok(Some(average))
}

fn copy_of(pages: usize) -> Result<CopyCosts> {
    let times = Arc::new(Mutex::new([const { Vec::new() }; 2]));
    let (found, order) = (Arc::clone(&times), Order::ZERO);
    let ask: Body = Box::new(move |target| {
        let page = |target: &mut dyn Target| target.alloc(order, MigrateType::Movable, Fill::Undefined);
        let taken = (0..pages).filter_map(|_| Some((page(target).ok()?, order)));
        let mut message = Message { blocks: taken.collect(), ..Message::default() };
        for _ in 0..ROUNDS {
            copy_each(target, &message);
            target.send(THERE, message);
            let Some(returned) = target.receive(BACK) else { return };
            message = returned;
        }
        message.blocks.into_iter().for_each(|block| target.free(block));
        target.close(THERE);
    });
    let answer: Body = Box::new(move |target| {
        while let Some(message) = target.receive(THERE) {
            let round = [copy_each(target, &message), copy_each(target, &message)];
            let mut times = found.lock().expect("no thread panics while it holds the lock");
            times.iter_mut().zip(round).for_each(|(times, ns)| times.push(ns));
            target.send(BACK, message);
        }
        target.close(BACK);
    });
    let channel = ChannelSpec { capacity: 1, senders: 1 };
    run(fixed(63), vec![channel; 2], [ask, answer])?;
    let times = times.lock().expect("no thread panics while it holds the lock");
    let [from_core, near] = &*times;
    Ok(CopyCosts { near: median(near), from_core: median(from_core) })
}

/// Copies each page in place. Returns the time of copying one page, in nanoseconds.
fn copy_each(target: &mut dyn Target, pages: &Message) -> f64 {
    let began = target.now_ns();
    pages.blocks.iter().for_each(|(pfn, _)| target.touch(*pfn, 4096, Access::Copy));
    (target.now_ns() - began) as f64 / pages.blocks.len().max(1) as f64
}
