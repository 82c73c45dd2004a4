// Reads Markdown pages with harper, a grammar checker, and prints each finding with its place. Ends with 1 if there are any.
//
//     node grammar.mjs HARPER PAGES...
//
// HARPER is the directory of the package harper.js. `words.txt` has the project's words. `accepted.txt` has findings that are
// no mistakes: a rule and a part of the line.
import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';

const [harper, ...pages] = process.argv.slice(2);
const part = name => import(pathToFileURL(path.resolve(harper, 'dist', name)).href);
const { Dialect, LocalLinter } = await part('index.js');
const { binaryInlined } = await part('binaryInlined.js');

/// Rules whose findings are the style of the project, or are cells of tables.
const OFF = [
    'SentenceCapitalization', // a cell, or the name of a command at the beginning
    'UseTitleCase', // headings are sentences
    'OxfordComma', // "reclaim, swap or compaction"
    'NumericRangeEnDash', 'EllipsisLength', 'UseEllipsisCharacter', // ASCII, as the command prints
    'ExpandMemoryShorthands', 'ExpandTimeShorthands', // units: MiB, ns
    'ExpandAlloc', 'ExpandControl', 'ExpandMinimum', 'ExpandPerformance', // names: alloc, Ctrl, min, perf
    'SplitWords', 'DisjointPrefixes', 'CompoundNouns', // terms: pageblock, auto-tuning
    'DiscourseMarkers', // "Otherwise the ..."
    'QuantifierNumeralConflict', // "for each 4 KiB"
];

const lines = name => fs.readFileSync(new URL(name, import.meta.url), 'utf8').split('\n')
    .filter(line => line && !line.startsWith('#'));
const accepted = lines('accepted.txt').map(line => {
    const [, rule, excerpt] = line.match(/^(\w+): (.+)$/);
    return { rule, excerpt, used: false };
});

const known = new Set(lines('words.txt').map(word => word.toLowerCase()));
/// Hashes of commits and names such as `f512` are in no dictionary, the possessive of a known word need not be.
const isKnown = word => /\d|^[a-z]\.?$/i.test(word) || known.has(word.toLowerCase().replace(/['’]s$/, ''));

const linter = new LocalLinter({ binary: binaryInlined, dialect: Dialect.British });
await linter.setup();
const config = await linter.getLintConfig();
for (const rule of OFF) {
    if (!(rule in config)) throw new Error(`harper has no rule ${rule}: take it out of ${import.meta.url}`);
    config[rule] = false;
}
await linter.setLintConfig(config);

/// What harper finds in a text: rule, line from 1, words, advice.
async function findings(text) {
    const rules = await linter.organizedLints(text, { language: 'markdown' });
    return Object.entries(rules).flatMap(([rule, lints]) => lints.map(lint => {
        const before = text.slice(0, lint.span().start).split('\n');
        return { rule, line: before.length, words: lint.get_problem_text(), advice: lint.message() };
    })).filter(({ rule, words }) => rule !== 'SpellCheck' || !isKnown(words));
}

// A checker that finds nothing here would find nothing anywhere.
const wrong = new Set((await findings('The zone lock protect an list, and the the page set recieves it.\n')).map(({ rule }) => rule));
if (wrong.size < 3) throw new Error(`harper finds only ${[...wrong]} in a sentence with four mistakes`);

let count = 0;
for (const page of pages) {
    const text = fs.readFileSync(page, 'utf8');
    const source = text.split('\n');
    for (const { rule, line, words, advice } of await findings(text)) {
        const place = source.slice(line - 1, line + 1).join(' ');
        const exception = accepted.find(one => one.rule === rule && place.includes(one.excerpt));
        if (exception) {
            exception.used = true;
            continue;
        }
        count += 1;
        console.log(`${page}:${line}: ${rule}: "${words.replace(/\s+/g, ' ')}": ${advice}`);
    }
}
for (const { rule, excerpt } of accepted.filter(exception => !exception.used)) {
    console.log(`ci/docs/accepted.txt: "${rule}: ${excerpt}" accepts nothing: take it out`);
}
console.log(`${pages.length} pages, ${count} findings`);
process.exit(count ? 1 : 0);
