//! `pageset policies` lists the policies, shows the rules and constants of one policy, or prints one policy
//! as a file.

pub(crate) mod args;
mod wording;

use std::io::Write;

use anyhow::{Context as _, Result};
use pageset_core::{POLICIES, Policy};
use pageset_replay::policy_to_toml;
use pageset_report::{Cell, Column, Format, Row, Table, json_document};
use serde::Serialize;

use crate::output;
use crate::paragraph;
use crate::policies::args::PoliciesArgs;
use wording::{Rule, rules};

pub(crate) fn run(args: &PoliciesArgs) -> Result<()> {
    if args.toml {
        let policy = args
            .name
            .context("name the policy that the file begins with: pageset policies linux-6.18 --toml")?;
        return output::write(&args.output.target, |out| {
            Ok(out.write_all(policy_to_toml(policy).as_bytes())?)
        });
    }
    output::write(&args.output.target, |out| write(args.name, args.output.format(), out))
}

fn write(named: Option<&Policy>, format: Format, out: &mut dyn Write) -> Result<()> {
    match (named, format) {
        (None, Format::Json) => {
            json_document(&POLICIES.iter().map(PolicyDocument::new).collect::<Vec<_>>(), out)?;
        }
        (Some(policy), Format::Json) => json_document(&PolicyDocument::new(policy), out)?,
        (None, Format::Table) => {
            for policy in POLICIES {
                writeln!(out, "{}  (Linux {})", policy.name, policy.kernel)?;
                paragraph::write(out, 4, policy.summary)?;
            }
            writeln!(out, "\n`pageset policies NAME` shows all rules and constants of one policy.")?;
        }
        (None, _) => format.exporter().export(&list(), out)?,
        (Some(policy), _) => format.exporter().export(&one(policy), out)?,
    }
    Ok(())
}

fn list() -> Table {
    let columns = vec![
        Column::label("policy", "policy"),
        Column::label("kernel", "kernel"),
        Column::label("summary", "what it is"),
    ];
    let mut table = Table::new("Policies, oldest first", columns);
    for policy in POLICIES {
        table.push(Row::new([policy.name, policy.kernel, policy.summary].map(Cell::from)));
    }
    table
}

fn one(policy: &Policy) -> Table {
    let columns = vec![Column::label("rule", "rule"), Column::label("value", "value")];
    let title = format!("{} (Linux {}): {}", policy.name, policy.kernel, policy.summary);
    let mut table = Table::new(title, columns);
    for rule in rules(policy) {
        table.push(Row::new([rule.name.into(), rule.value.into()]));
    }
    table.note(format!("Source: {}.", policy.source));
    table
}

/// The JSON document of a policy.
#[derive(Serialize)]
struct PolicyDocument {
    name: &'static str,
    kernel: &'static str,
    summary: &'static str,
    source: &'static str,
    scale_max: u8,
    lists: usize,
    rules: Vec<Rule>,
}

impl PolicyDocument {
    fn new(policy: &Policy) -> Self {
        Self {
            name: policy.name,
            kernel: policy.kernel,
            summary: policy.summary,
            source: policy.source,
            scale_max: policy.scale_max,
            lists: policy.lists.lists(),
            rules: rules(policy),
        }
    }
}
