// Pictures of a page's parts, light and dark: `pictures.mjs PAGE DIRECTORY`.
import { chromium } from "playwright-core";

const [file, directory] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
// The first section, the last one, and how much is shown: of a page without an end nobody sees the beginning.
for (const [name, colorScheme, top, bottom, tallest] of [
  ["report-light", "light", 0, 1, 1150],
  ["report-dark", "dark", 0, 1, 1150],
  ["report-policies", "light", 4, 4, 810],
]) {
  const page = await browser.newPage({ viewport: { width: 1000, height: 900 }, colorScheme });
  await page.goto(`file://${file}`);
  const box = async (at) => page.locator(`#s${at}`).boundingBox();
  const [first, last] = [await box(top), await box(bottom)];
  const y = top === 0 ? 0 : first.y;
  const height = Math.min(last.y + last.height - y, tallest);
  await page.screenshot({ path: `${directory}/${name}.png`, fullPage: true, clip: { x: 0, y, width: 1000, height } });
}
await browser.close();
