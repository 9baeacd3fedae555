//! How many nodes, and how many tasks of an array at a time.

use super::*;

/// Twelve CPUs and 8 GiB on each of four nodes, of which 2 GiB each are used.
fn four_nodes(change: impl Fn(u32, &mut Run)) -> Vec<Run> {
    runs(5, |number, run| {
        run.nodes = Maybe::some(4);
        run.tasks = Maybe::some(48);
        run.cpus = Maybe::some(48);
        run.cpu_millis = Maybe::some(u64::from(HOUR) * 48 * 950);
        run.allocated_memory = Maybe::some(32 * GIB);
        change(number, run);
    })
}

fn nodes_of(runs: &[Run], limits: Option<&Limits>) -> Advice {
    let found = advised(runs, limits).into_iter().find(|advice| advice.flag == Flag::Nodes);
    found.expect("advice on nodes")
}

#[test]
fn what_fits_on_one_node_is_advised_to_take_one() {
    let spread = four_nodes(|_, _| ());
    let advice = nodes_of(&spread, Some(&limits()));
    assert_eq!((advice.verdict, advice.suggestion), (Verdict::Lower, Some(Amount::Count(1))));
    assert_eq!(advice.directive().as_deref(), Some("#SBATCH --nodes=1"));
    assert!(
        advice.because.starts_with("5 completed runs: 48 CPUs, and at most 8G of memory in all"),
        "{}",
        advice.because
    );
    // Memory is asked for per node: 4 x 2 GiB + 30 % = 10.4, and 8 are asked for now.
    let advice = &advised(&spread, Some(&limits()))[1];
    assert_eq!((advice.verdict, advice.suggestion), (Verdict::Raise, Some(gib(11))), "{advice:?}");
    assert_eq!(advice.misfits, Some(Misfits { runs: 0, unknown: 0, of: 5 }));
    // 200 CPUs need four nodes of 64, and so do 240 GiB on each.
    let many = four_nodes(|_, run| run.cpus = Maybe::some(200));
    assert_eq!(nodes_of(&many, Some(&limits())).verdict, Verdict::Keep);
    let large = four_nodes(|_, run| {
        run.allocated_memory = Maybe::some(960 * GIB);
        run.node_memory = Maybe::some(180 * GIB);
    });
    assert_eq!(nodes_of(&large, Some(&limits())).verdict, Verdict::Keep);
}

#[test]
fn nothing_is_said_of_nodes_without_evidence() {
    assert!(advised(&runs(5, |_, _| ()), None).iter().all(|advice| advice.flag != Flag::Nodes));
    let spread = four_nodes(|_, _| ());
    // The size of the nodes, enough runs, memory, and how many GPUs a node has.
    assert_eq!(nodes_of(&spread, None).verdict, Verdict::Unknown);
    assert_eq!(nodes_of(&spread[..2], Some(&limits())).verdict, Verdict::Unknown);
    let unmeasured = four_nodes(|_, run| run.node_memory = Maybe::NONE);
    assert_eq!(nodes_of(&unmeasured, Some(&limits())).verdict, Verdict::Unknown);
    let gpus = four_nodes(|_, run| run.gpus = Maybe::some(8));
    assert_eq!(nodes_of(&gpus, Some(&limits())).verdict, Verdict::Unknown);
    // Whole nodes of its own are no waste of others.
    let own = four_nodes(|_, run| run.exclusive = Some(true));
    assert_eq!(nodes_of(&own, Some(&limits())).verdict, Verdict::Keep);
}

#[test]
fn fewer_nodes_are_not_advised_where_they_were_slower_nor_more_where_they_were_not_faster() {
    let with = |others: u32, seconds: u32, cpus: u32| {
        let mut runs = four_nodes(|number, run| {
            if number < 3 {
                run.nodes = Maybe::some(others);
                run.cpus = Maybe::some(cpus);
                run.elapsed = Maybe::some(seconds);
                run.cpu_millis = Maybe::some(u64::from(seconds * cpus) * 950);
            }
        });
        runs.extend(four_nodes(|_, _| ()));
        nodes_of(&runs, Some(&limits()))
    };
    // The same 48 CPUs on two nodes took half as long again.
    let slower = with(2, HOUR * 3 / 2, 48);
    assert_eq!(slower.verdict, Verdict::Keep);
    assert!(slower.because.ends_with("runs on fewer nodes took 150 % of the time"));
    assert_eq!(with(2, HOUR, 48).verdict, Verdict::Lower);
    // Eight nodes took 52 % of the time: 1/2 of it would be ideal.
    let faster = with(8, HOUR * 52 / 100, 96);
    assert_eq!((faster.verdict, faster.suggestion), (Verdict::Raise, Some(Amount::Count(8))));
    assert_eq!(with(8, HOUR * 80 / 100, 96).verdict, Verdict::Lower);
}

/// Tasks of an array that begin `together` at a time and take so many seconds each.
fn array(waves: &[(u32, u32)]) -> Vec<Run> {
    let mut at = 1_000_000;
    let mut made = Vec::new();
    for (together, seconds) in waves {
        for _ in 0..*together {
            let task = u32::try_from(made.len()).expect("few");
            let mut run = run(77);
            run.part = RunPart::Task(task);
            run.started = Maybe::some(at);
            run.ended = Maybe::some(at + seconds);
            run.elapsed = Maybe::some(*seconds);
            made.push(run);
        }
        at += seconds;
    }
    made
}

fn throttle(runs: &[Run]) -> Advice {
    let found = advised(runs, None).into_iter().find(|advice| advice.flag == Flag::Array);
    found.expect("advice on the throttle")
}

#[test]
fn a_throttle_only_where_more_at_a_time_get_no_more_done() {
    let waves = |seconds: u32| {
        let mut waves = vec![(5, 600); 8];
        waves.extend([(20, seconds); 2]);
        array(&waves)
    };
    // Four times as many took four times as long: five at a time do as much.
    let advice = throttle(&waves(2400));
    assert_eq!((advice.verdict, advice.suggestion), (Verdict::Set, Some(Amount::AtATime(5))));
    assert_eq!(advice.suggestion.map(Amount::to_option).as_deref(), Some("%5"));
    assert!(
        advice.because.contains("with 5 at a time one took 00:10:00, with 20 it took 00:40:00")
    );
    // The indices of the next array are not known here, so there is no line to paste.
    assert_eq!(advice.directive(), None);
    // In twice the time four times as many get twice as much done.
    assert_eq!(throttle(&waves(1200)).verdict, Verdict::Keep);
    assert_eq!(throttle(&waves(600)).verdict, Verdict::Keep);
    // Always as many at a time, or hardly any: nothing to compare.
    assert_eq!(throttle(&array(&[(20, 600); 4])).verdict, Verdict::Unknown);
    assert_eq!(throttle(&array(&[(2, 600); 30])).verdict, Verdict::Unknown);
    // And nothing is said of what is no array.
    assert!(advised(&runs(5, |_, _| ()), None).iter().all(|advice| advice.flag != Flag::Array));
}

#[test]
fn a_throttle_that_is_there_is_not_set_again() {
    let mut history = History::default();
    let line = history.names.intern("sbatch --array=0-79%5 sweep.sh");
    let mut waves = vec![(5, 600); 8];
    waves.extend([(20, 2400); 2]);
    let mut runs = array(&waves);
    for run in &mut runs {
        run.submit_line = Some(line);
    }
    let runs: Vec<&Run> = runs.iter().collect();
    let advice = sizing(&runs, &history, None, &BASIS).pop().expect("advice");
    assert_eq!((advice.flag, advice.now), (Flag::Array, Some(Amount::AtATime(5))));
    assert_eq!(advice.verdict, Verdict::Keep);
}
