//! Runs a workload on real threads, on this machine's first CPUs: `threads WORKLOAD [CPUS [MS [KEY=VALUE
//! ...]]]`.

use std::time::Duration;

use pageset_core::Policy;
use pageset_study::load::{Generation, Settings, Setup, Topology, Workload};
use pageset_study::{ThreadOptions, run_on_threads};

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "page_fault1".to_owned());
    let workload = Workload::named(&name).unwrap_or_else(|| panic!("unknown workload {name}"));
    let cpus = args.next().map_or(2, |cpus| cpus.parse().expect("CPUS is a number"));
    let ms = args.next().map_or(1000, |ms| ms.parse().expect("MS is a number"));
    let mut settings = Settings::default();
    for setting in args {
        let (key, value) = setting.split_once('=').expect("settings are KEY=VALUE");
        settings.set(key, value.parse().expect("VALUE is a number"));
    }
    let topology = Topology::even(cpus, 1);
    let setup = Setup { topology: &topology, cpus, generation: Generation::V6_6, settings: &settings };
    for policy in ["linux-6.6", "linux-6.12"].map(|name| *Policy::named(name).expect("it is a policy")) {
        let options = ThreadOptions {
            policy,
            pages: 1 << 18,
            warm_up: Duration::from_millis(200),
            duration: Duration::from_millis(ms),
            seed: 1,
        };
        let plan = workload.plan(&setup).unwrap_or_else(|error| panic!("{error}"));
        let outcome = run_on_threads(plan, &options).unwrap_or_else(|error| panic!("{error}"));
        println!("{name} {} {:.0} {}/s", policy.name, outcome.score_per_second(), workload.unit);
    }
}
