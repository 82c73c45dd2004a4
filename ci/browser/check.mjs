// Opens pages and looks whether they do what they should. Ends with 1 if one does not.
import { chromium } from "playwright-core";
import { statSync } from "node:fs";

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
let failures = 0;
for (const file of process.argv.slice(2)) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, offline: true });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => { if (message.type() === "error") wrong.push(`console: ${message.text()}`); });
  page.on("pageerror", (error) => wrong.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => { wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => { if (request.url() !== `file://${file}`) wrong.push(`request: ${request.url()}`); });
  const expect = (what, is) => { if (!is) wrong.push(what); };

  const begin = Date.now();
  await page.goto(`file://${file}`);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const seconds = (Date.now() - begin) / 1000;

  await look(page, expect);
  const { compared, different } = await page.evaluate(compareWithJson);
  different.forEach((what) => wrong.push(`number: ${what}`));
  expect("there are numbers", compared > 50);
  expect("names stay text", (await page.title()).indexOf("taken") < 0 && (await page.locator("img, iframe, object").count()) === 0);

  await page.setViewportSize({ width: 400, height: 900 });
  await page.waitForTimeout(200);
  expect("nothing scrolls sideways at 400 pixels", await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  const tracks = await page.locator("span.track").evaluateAll((all) => all.map((track) => track.clientWidth));
  expect("bars keep their room at 400 pixels", tracks.every((width) => width > 300));

  const size = (statSync(file).size / 1e6).toFixed(2);
  console.log(`${file.split("/").pop()}: ${size} MB, open in ${seconds.toFixed(2)} s, ${compared} numbers compared, ${wrong.length} wrong`);
  wrong.slice(0, 20).forEach((what) => console.log(`  ${what}`));
  failures += wrong.length;
  await context.close();
}
await browser.close();
process.exit(failures > 0 ? 1 : 0);

/** Zooms, hovers and presses keys. */
async function look(page, expect) {
  const charts = page.locator("figure canvas");
  const first = charts.nth(0), second = charts.nth(1);
  const picture = (chart) => chart.evaluate((canvas) => canvas.toDataURL());
  const said = (at = 0) => page.locator("figure output").nth(at).textContent();
  await first.scrollIntoViewIfNeeded();
  const [whole, other] = [await picture(first), await picture(second)];
  const box = await first.boundingBox();
  expect("a chart is not blank", new Set(whole).size > 10 && whole.length > 2000);

  await page.mouse.move(box.x + box.width * 0.4, box.y + 50);
  const hover = await said();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 50);
  expect("hover says values", /\d/.test(hover) && hover !== (await said()));

  // The last second that a chart shows, as it says itself.
  const last = async () => {
    await page.mouse.move(box.x + box.width - 12, box.y + 50);
    return [parseFloat(await said()), parseFloat(await said(1))];
  };
  const [all] = await last();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 50, { steps: 4 });
  await page.mouse.up();
  const [here, there] = await last();
  await page.mouse.move(2, 2);
  expect("a brush zooms", here < 0.6 * all && (await picture(first)) !== whole);
  expect("a brush zooms linked charts", there === here && (await picture(second)) !== other);
  await first.focus();
  await page.keyboard.press("Escape");
  expect("Escape shows all again", (await picture(first)) === whole && (await picture(second)) === other);
  await page.keyboard.press("ArrowRight");
  expect("keys move the cursor", /\d/.test(await said()));
  await page.keyboard.press("+");
  expect("keys zoom", (await picture(first)) !== whole);
  await page.keyboard.press("Escape");

  const drains = page.locator("fieldset input[value='1']").first();
  const map = page.locator("figure:has(fieldset) canvas").first();
  const refills = await picture(map);
  await drains.check();
  expect("another layer is another picture", (await picture(map)) !== refills);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.waitForTimeout(100);
  expect("dark is another picture", (await picture(first)) !== whole);
  await page.emulateMedia({ colorScheme: "light" });
  expect("terms explain themselves", (await page.locator("abbr[title]").count()) > 5);
  expect("drag-to-zoom is announced", await page.locator(".drag").first().isVisible());
  const fold = page.locator("details:has(> figure)").first();
  if (await fold.count()) {
    await fold.locator("summary").click();
    await page.waitForTimeout(100);
    expect("a folded chart is drawn when it is opened", await fold.locator("canvas").evaluate((canvas) => canvas.clientWidth > 200 && canvas.toDataURL().length > 2000));
    await fold.locator("summary").click();
  }
  const named = await page.locator("canvas[role=img][aria-label]").count();
  expect("every chart has a text", named === (await page.locator("canvas").count()));
}

/** Compares each number in a table with the page's JSON. Runs in the page. */
function compareWithJson() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const different = [];
  let compared = 0;
  const powers = { G: 1e9, T: 1e12, P: 1e15, E: 1e18 };
  const same = (text, value, where) => {
    compared++;
    if (value === null || value === undefined) { if (text !== "-") different.push(`${where}: ${text} for nothing`); return; }
    if (typeof value === "string") return;
    const power = powers[text.slice(-1)] || 1;
    const shown = power > 1 ? text.slice(0, -1) : text;
    const digits = shown.includes(".") ? shown.length - shown.indexOf(".") - 1 : 0;
    const room = (0.5000001 * power) / 10 ** digits;
    if (!(Math.abs(Number(shown) * power - value) <= (Number.isInteger(value) && power === 1 ? 0 : room))) different.push(`${where}: ${text} for ${value}`);
  };
  data.sections.forEach((section, at) => {
    const element = document.getElementById(`s${at}`);
    const tables = [...element.querySelectorAll("table:not(.bars)")], bars = [...element.querySelectorAll("table.bars")];
    for (const part of section.parts) {
      if (part.transposed) {
        const { title, columns, rows: all } = part.transposed, rows = [...tables.shift().querySelectorAll("tbody tr")];
        columns.forEach((column, index) => all.forEach((row, place) =>
          same(rows[index].cells[place + 1].textContent, row[column.key], `${title}, ${column.key}, ${place}`)));
      }
      const table = part.table || part.evidence;
      if (table) {
        const rows = [...tables.shift().querySelectorAll("tbody tr")];
        if (rows.length !== table.rows.length) different.push(`${table.title}: ${rows.length} rows for ${table.rows.length}`);
        table.rows.forEach((row, place) => table.columns.forEach((column, index) =>
          same(rows[place].cells[index].textContent, row[column.key], `${table.title}, ${column.key}, ${place}`)));
      }
      for (const each of part.bars || []) {
        const rows = [...bars.shift().querySelectorAll("tr")];
        each.bars.forEach((bar, place) => {
          same(rows[place].cells[1].textContent, bar.value, `${each.title}, ${bar.name}`);
          const range = bar.range ? `${bar.range[0]} to ${bar.range[1]}` : "";
          if (rows[place].cells[3].textContent !== range) different.push(`${each.title}, ${bar.name}: ${range}`);
        });
      }
    }
  });
  return { compared, different };
}
