// Draws the charts of a page from the values in it. All charts of one recording are zoomed together.
"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const LEFT = 84, RIGHT = 10, BOTTOM = 24, STRIP = 14, PLOT = 150, CELL = 28, GAP = 5;
  const zooms = new Map(); // by link: {from, to, cursor} in seconds
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const number = (value) => (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6))));
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  /** The view of a chart: what its x axis shows, shared by all charts of its link. */
  function viewOf(chart) {
    if (!chart.span) return { from: 0, to: chart.columns.length, cursor: null, all: chart.columns.length };
    const { link, seconds } = chart.span;
    if (!zooms.has(link)) zooms.set(link, { from: 0, to: seconds, cursor: null, all: seconds });
    return zooms.get(link);
  }

  /** Steps between ticks that people can read. */
  function ticks(from, to, count) {
    const rough = (to - from) / count || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough);
    const all = [];
    for (let at = Math.ceil(from / step) * step; at <= to + step * 1e-9; at += step) all.push(Number(at.toPrecision(12)));
    return all;
  }

  class Picture {
    constructor(figure) {
      const [section, part] = figure.dataset.chart.split(".").map(Number);
      const shown = page.sections[section].parts[part];
      this.chart = shown.chart || shown.folded_chart;
      this.figure = figure;
      this.canvas = figure.querySelector("canvas");
      this.output = figure.querySelector("output");
      this.legend = figure.querySelector(".legend");
      this.view = viewOf(this.chart);
      this.layer = 0;
      this.row = 0;
      this.listen();
      const fold = figure.closest("details");
      if (fold) fold.addEventListener("toggle", () => this.draw());
    }

    get plotHeight() {
      if (this.chart.kind === "lines") return PLOT;
      return clamp(Math.floor(460 / this.chart.rows.length), 2, CELL) * this.chart.rows.length;
    }

    get strips() { return this.chart.kind === "lines" ? GAP + this.chart.marks.length * STRIP : 0; }

    /** Makes the canvas as sharp as the screen, and clears it. */
    begin() {
      const scale = window.devicePixelRatio || 1;
      this.width = this.canvas.parentElement.clientWidth;
      this.height = this.plotHeight + this.strips + BOTTOM + 6;
      this.canvas.style.height = `${this.height}px`;
      this.canvas.width = Math.round(this.width * scale);
      this.canvas.height = Math.round(this.height * scale);
      const context = this.canvas.getContext("2d");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.fillStyle = colour("--ground");
      context.fillRect(0, 0, this.width, this.height);
      context.font = "12px system-ui, sans-serif";
      this.context = context;
      this.inner = Math.max(this.width - LEFT - RIGHT, 10);
      // Cells of a matrix are square, or as wide as a number.
      if (!this.chart.span) this.inner = Math.min(this.inner, this.chart.columns.length * Math.max(this.plotHeight / this.chart.rows.length, this.isSmall ? 72 : 0));
    }

    /** Whether cells have room for their numbers. */
    get isSmall() { return !this.chart.span && this.chart.kind === "heat" && this.chart.columns.length <= 12; }

    x(value) { return LEFT + ((value - this.view.from) / (this.view.to - this.view.from)) * this.inner; }
    value(x) { return this.view.from + clamp((x - LEFT) / this.inner, 0, 1) * (this.view.to - this.view.from); }

    draw() {
      this.begin();
      this.legend.replaceChildren();
      if (this.chart.kind === "lines") this.drawLines(); else this.drawHeat();
      this.drawTime();
      this.drawCursor();
    }

    text(words, x, y, align = "left", ink = "--soft") {
      this.context.fillStyle = colour(ink);
      this.context.textAlign = align;
      this.context.textBaseline = "middle";
      this.context.fillText(words, x, y);
    }

    drawTime() {
      const bottom = this.height - BOTTOM;
      const heat = this.chart;
      if (!heat.span) {
        const step = Math.max(1, Math.ceil((heat.columns.length * 34) / this.inner));
        heat.columns.forEach((name, at) => {
          if (at % step === 0) this.text(name, this.x(at + 0.5), bottom + 10, "center");
        });
        this.text(heat.column, 4, bottom + 10);
        return;
      }
      for (const at of ticks(this.view.from, this.view.to, Math.max(2, this.inner / 110))) {
        this.text(`${at} s`, clamp(this.x(at), LEFT + 8, this.width - 22), bottom + 12, "center");
        this.context.fillStyle = colour("--line");
        this.context.fillRect(this.x(at), bottom, 1, 4);
      }
    }

    drawCursor() {
      if (this.view.cursor === null) return;
      this.context.fillStyle = colour("--ink");
      this.context.fillRect(this.x(this.view.cursor), 0, 1, this.height - BOTTOM);
      if (this.brush) {
        const [from, to] = [this.x(this.brush.from), this.x(this.brush.to)];
        this.context.globalAlpha = 0.2;
        this.context.fillRect(Math.min(from, to), 0, Math.abs(to - from), this.height - BOTTOM);
        this.context.globalAlpha = 1;
      }
    }

    key(name, style) {
      const item = document.createElement("span"), swatch = document.createElement("i");
      Object.assign(swatch.style, style);
      item.append(swatch, document.createTextNode(name));
      this.legend.append(item);
    }

    /** Points that are seen, with the one before and the one behind. */
    seen(points) {
      const { from, to } = this.view;
      const first = points.findIndex((point) => point[0] > from);
      const end = points.findIndex((point) => point[0] > to);
      return points.slice(first < 0 ? Math.max(points.length - 1, 0) : Math.max(first - 1, 0), end < 0 ? undefined : end + 1);
    }

    drawLines() {
      const { context, chart } = this;
      const lines = chart.lines.map((line) => this.seen(line.points));
      const most = Math.max(1, ...lines.flat().map((point) => point[2]));
      const place = (value) => (chart.height === "log" ? Math.log1p(value) / Math.log1p(most) : value / most);
      const y = (value) => 6 + (1 - place(value)) * (PLOT - 6);
      const powers = [0, ...Array.from({ length: 19 }, (_, power) => 10 ** power)].filter((at) => at <= most);
      for (const at of chart.height === "log" ? powers.filter((_, index) => index !== 1 && (powers.length < 6 || index % 2 === 0)) : ticks(0, most, 3)) {
        context.fillStyle = colour("--line");
        context.fillRect(LEFT, Math.round(y(at)), this.inner, 1);
        this.text(number(at), LEFT - 6, clamp(y(at), 8, PLOT - 2), "right");
      }
      this.text(chart.unit, 4, 8);
      context.save();
      context.beginPath();
      context.rect(LEFT, 0, this.inner, PLOT + 1);
      context.clip();
      chart.lines.forEach((line, at) => this.drawLine(line, lines[at], y, `--c${at % 7}`));
      context.restore();
      this.drawChanges(y(most));
      chart.marks.forEach((marks, at) => this.drawMarks(marks, PLOT + GAP + at * STRIP, `--c${(at + chart.lines.length) % 7}`));
    }

    drawLine(line, points, y, ink) {
      const { context } = this;
      this.key(line.name, line.look === "limit" ? { borderTop: `2px dashed ${colour(ink)}`, height: "0.3em" } : { background: colour(ink) });
      if (points.length === 0) return;
      const end = this.x(this.view.to);
      context.beginPath();
      points.forEach(([second, low, high], at) => {
        const x = this.x(second);
        if (at === 0) context.moveTo(x, y(low));
        context.lineTo(x, y(high));
        context.lineTo(x, y(low));
        const next = at + 1 < points.length ? this.x(points[at + 1][0]) : end;
        context.lineTo(next, y(low));
      });
      context.strokeStyle = colour(ink);
      context.lineWidth = line.look === "limit" ? 1.5 : 1.2;
      context.setLineDash(line.look === "limit" ? [5, 3] : []);
      context.stroke();
      context.setLineDash([]);
      if (line.look !== "filled") return;
      context.lineTo(end, y(0));
      context.lineTo(this.x(points[0][0]), y(0));
      context.globalAlpha = 0.18;
      context.fillStyle = colour(ink);
      context.fill();
      context.globalAlpha = 1;
    }

    /** From the moment when all was as before to the one when it was not. */
    drawChanges(top) {
      const { context } = this, changes = this.chart.changes || [];
      if (changes.length === 0) return;
      const ink = colour("--c3");
      this.key("a setting changed", { background: ink, width: "0.4em" });
      for (const change of changes) {
        const from = Math.max(this.x(change.after), LEFT), to = Math.min(this.x(change.before), LEFT + this.inner);
        context.fillStyle = ink;
        if (to >= LEFT && from <= LEFT + this.inner) context.fillRect(from, top, Math.max(2, to - from), PLOT - top);
      }
    }

    drawMarks(marks, top, ink) {
      const most = Math.max(1, ...marks.counts);
      this.text(marks.name, LEFT - 6, top + STRIP / 2 + 1, "right");
      this.context.fillStyle = colour(ink);
      const width = Math.max(1, (this.inner * this.view.all) / (marks.counts.length || 1) / (this.view.to - this.view.from));
      marks.counts.forEach((count, at) => {
        const x = this.x((at / marks.counts.length) * this.view.all);
        if (count === 0 || x + width < LEFT || x > LEFT + this.inner) return;
        const tall = 3 + (STRIP - 5) * Math.sqrt(count / most);
        this.context.fillRect(x, top + STRIP - tall, width, tall);
      });
    }

    /** Columns of the layer that are seen, each the largest of what it stands for. */
    columns() {
      const cells = this.chart.layers[this.layer].cells;
      const count = this.chart.span ? Math.max(1, ...cells.map((row) => row.length)) : this.chart.columns.length;
      const first = Math.floor((this.view.from / this.view.all) * count);
      const end = Math.max(first + 1, Math.ceil((this.view.to / this.view.all) * count));
      return { cells, count, first, end, shown: Math.min(end - first, Math.max(1, Math.round(this.inner))) };
    }

    drawHeat() {
      const { context, chart } = this;
      const { cells, count, first, end, shown } = this.columns();
      let most = 0;
      for (const row of cells) for (const value of row) most = Math.max(most, value);
      const stops = ["--h0", "--h1", "--h2", "--h3"].map((name) => colour(name).match(/[0-9a-f]{2}/gi).map((pair) => parseInt(pair, 16)));
      const picture = document.createElement("canvas");
      picture.width = shown;
      picture.height = chart.rows.length;
      const image = picture.getContext("2d").createImageData(shown, chart.rows.length);
      chart.rows.forEach((_, row) => {
        for (let column = 0; column < shown; column++) {
          const from = first + Math.floor((column * (end - first)) / shown), to = first + Math.floor(((column + 1) * (end - first)) / shown);
          let value = 0;
          for (let at = from; at < to; at++) value = Math.max(value, cells[row][at] || 0);
          // What is not 0 can be told from 0.
          const place = value === 0 ? 0 : 0.35 + 2.65 * Math.sqrt(value / most), stop = Math.min(Math.floor(place), 2);
          const at = (row * shown + column) * 4;
          for (let part = 0; part < 3; part++) image.data[at + part] = stops[stop][part] + (stops[stop + 1][part] - stops[stop][part]) * (place - stop);
          image.data[at + 3] = 255;
        }
      });
      picture.getContext("2d").putImageData(image, 0, 0);
      context.imageSmoothingEnabled = false;
      context.save();
      context.beginPath();
      context.rect(LEFT, 0, this.inner, this.plotHeight);
      context.clip();
      const left = this.x((first / count) * this.view.all), right = this.x((end / count) * this.view.all);
      context.drawImage(picture, left, 0, right - left, this.plotHeight);
      context.restore();
      this.drawRows();
      if (this.isSmall) this.drawNumbers(cells, most);
      const unit = chart.layers[this.layer].unit;
      this.key("0", { background: colour("--h0"), border: `1px solid ${colour("--line")}` });
      this.key(`to ${number(most)}${unit ? ` ${unit}` : ""}`, { background: `linear-gradient(90deg, ${colour("--h1")}, ${colour("--h2")}, ${colour("--h3")})`, width: "6em" });
    }

    drawRows() {
      const { context, chart } = this;
      const tall = this.plotHeight / chart.rows.length;
      const step = Math.max(1, Math.ceil(13 / tall));
      chart.rows.forEach((name, at) => {
        if (at % step === 0) this.text(name, LEFT - 6, (at + 0.5) * tall + (step > 1 ? 4 : 0), "right");
      });
      let row = 0;
      for (const group of chart.groups) {
        // Nodes are told apart by more than caches.
        context.fillStyle = colour(group.name ? "--ink" : "--line");
        // Beside the cells, so that none is hidden.
        if (row > 0) context.fillRect(0, row * tall, LEFT - 2, 1);
        if (group.rows * tall >= 13) this.text(group.name, 2, row * tall + 8, "left", "--ink");
        row += group.rows;
      }
    }

    drawNumbers(cells, most) {
      const tall = this.plotHeight / cells.length;
      cells.forEach((row, at) => row.forEach((value, column) => {
        this.text(String(value), this.x(column + 0.5), (at + 0.5) * tall, "center", value > most * 0.15 ? "--ground" : "--ink");
      }));
    }

    /** What stands at the cursor, in words. */
    describe() {
      const { chart, view } = this;
      if (view.cursor === null) return "";
      if (chart.kind === "heat") {
        const { cells, count } = this.columns();
        const column = clamp(Math.floor((view.cursor / view.all) * count), 0, count - 1);
        const layer = chart.layers[this.layer];
        const where = chart.span ? `from ${number((column * view.all) / count)} s` : `${chart.column} ${chart.columns[column]}`;
        const value = cells[this.row][column] || 0;
        return `${chart.row} ${chart.rows[this.row]}, ${where}: ${layer.name} ${value}${layer.unit ? ` ${layer.unit}` : ""}`;
      }
      const all = chart.lines.map((line) => {
        const before = line.points.filter((point) => point[0] <= view.cursor);
        if (before.length === 0) return `${line.name} unknown`;
        const [, low, high] = before[before.length - 1];
        return low === high ? `${line.name} ${low}` : `${line.name} ${low} to ${high}`;
      });
      for (const marks of chart.marks) {
        const at = clamp(Math.floor((view.cursor / view.all) * marks.counts.length), 0, marks.counts.length - 1);
        all.push(`${marks.name} ${marks.counts[at] || 0}`);
      }
      const near = (this.view.to - this.view.from) / 100;
      for (const change of chart.changes || []) {
        if (view.cursor >= change.after - near && view.cursor <= change.before + near) all.push(change.text);
      }
      return `${number(view.cursor)} s: ${all.join(", ")}`;
    }

    /** Moves the cursor, or the zoom, of all charts of this one's link. */
    show(change) {
      Object.assign(this.view, change);
      for (const other of pictures) if (other.view === this.view) { other.draw(); other.output.textContent = other.describe(); }
    }

    zoom(from, to) {
      const least = this.view.all / 2000;
      if (to - from < least) return;
      this.show({ from: clamp(from, 0, this.view.all), to: clamp(to, 0, this.view.all) });
    }

    listen() {
      const { canvas } = this;
      const at = (event) => {
        const box = canvas.getBoundingClientRect();
        this.row = clamp(Math.floor(((event.clientY - box.top) / this.plotHeight) * (this.chart.rows || [0]).length), 0, (this.chart.rows || [0]).length - 1);
        return this.value(event.clientX - box.left);
      };
      canvas.addEventListener("pointermove", (event) => {
        const cursor = at(event);
        if (this.brush) this.brush.to = cursor;
        this.show({ cursor });
      });
      canvas.addEventListener("pointerdown", (event) => {
        if (!this.chart.span) return;
        canvas.setPointerCapture(event.pointerId);
        this.brush = { from: at(event), to: at(event) };
      });
      canvas.addEventListener("pointerup", () => {
        const brush = this.brush;
        this.brush = null;
        if (brush) this.zoom(Math.min(brush.from, brush.to), Math.max(brush.from, brush.to));
      });
      canvas.addEventListener("pointercancel", () => { this.brush = null; });
      canvas.addEventListener("pointerleave", () => { if (!this.brush) this.show({ cursor: null }); });
      canvas.addEventListener("dblclick", () => this.show({ from: 0, to: this.view.all }));
      canvas.addEventListener("keydown", (event) => this.keyPressed(event));
      this.figure.querySelectorAll("input").forEach((input) =>
        input.addEventListener("change", () => { this.layer = Number(input.value); this.show({}); }));
    }

    keyPressed(event) {
      const { from, to, all } = this.view, length = to - from;
      const cursor = this.view.cursor ?? from + length / 2;
      const step = this.chart.span ? length / 100 : 1;
      const rows = (this.chart.rows || [0]).length;
      const actions = {
        ArrowLeft: () => this.show({ cursor: clamp(cursor - step, from, to) }),
        ArrowRight: () => this.show({ cursor: clamp(cursor + step, from, to) }),
        ArrowUp: () => { this.row = clamp(this.row - 1, 0, rows - 1); this.show({ cursor }); },
        ArrowDown: () => { this.row = clamp(this.row + 1, 0, rows - 1); this.show({ cursor }); },
        "+": () => this.chart.span && this.zoom(cursor - length / 4, cursor + length / 4),
        "-": () => this.chart.span && this.zoom(cursor - length, cursor + length),
        Escape: () => this.show({ from: 0, to: all, cursor: null }),
      };
      if (!actions[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      actions[event.key]();
    }
  }

  const pictures = [...document.querySelectorAll("figure[data-chart]")].map((figure) => new Picture(figure));
  const drawAll = () => pictures.forEach((picture) => picture.draw());
  drawAll();
  let waits = 0;
  window.addEventListener("resize", () => { cancelAnimationFrame(waits); waits = requestAnimationFrame(drawAll); });
  for (const query of ["(prefers-color-scheme: dark)", "print"]) window.matchMedia(query).addEventListener("change", drawAll);
})();
