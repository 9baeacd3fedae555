//! Kilowatt-hours from what was allocated.
//!
//! Where meters counted what is a run's own, an estimate takes that, and adds the machine room; it
//! stands for all other runs, with its range. The other methods are formulas, whose figures compare
//! with those of other tools, and know no meter. Every figure is a row of `energy_constants.tsv`,
//! with its source; a site that knows better replaces it.

use std::borrow::Cow;

use super::{Held, HostTime, Load};

const CONSTANTS: &str = include_str!("energy_constants.tsv");

/// How energy is worked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// What meters counted; of other runs board power by GPU type at a part load, cores, memory,
    /// and the rest of the node; the machine room. With a range.
    #[default]
    Estimate,
    /// Watts of an allocated GPU and of an allocated core, times hours, and nothing else: figures
    /// that compare with those of other tools.
    Flat,
    /// The formula and the defaults of Green Algorithms (Lannelongue, Grealey and Inouye, Advanced
    /// Science 8 (2021) 2100707): board power and cores at full load, memory, machine room.
    GreenAlgorithms,
}

/// What a site, or whoever asks, knows better than the constants.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Site {
    /// Power of the machine room per power of its computers.
    pub pue: Option<f64>,
    /// Watts of a GPU: of the whole board for an estimate, as drawn for the flat method.
    pub gpu_watts: Option<f64>,
    /// Watts of a core.
    pub core_watts: Option<f64>,
}

/// An amount with its range; no range where the method claims none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The amount.
    pub value: f64,
    /// The least and the most that it may be.
    pub bounds: Option<(f64, f64)>,
}

impl Range {
    /// The amount in another unit.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            bounds: self.bounds.map(|(low, high)| (low * factor, high * factor)),
        }
    }
}

/// Low, likely, high.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figure([f64; 3]);

impl Figure {
    fn exactly(value: f64) -> Self {
        Self([value; 3])
    }

    fn times(self, other: Self) -> Self {
        Self(std::array::from_fn(|index| self.0[index] * other.0[index]))
    }

    fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|index| self.0[index] + other.0[index]))
    }
}

/// A figure that the energy rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Assumption {
    /// Of what.
    pub what: String,
    /// How much.
    pub figure: Range,
    /// Its unit; `times` for a factor on what the rest adds up to, empty for a plain ratio.
    pub unit: &'static str,
}

/// A row of the constants.
#[derive(Debug, Clone, Copy)]
struct Constant {
    group: &'static str,
    key: &'static str,
    figure: Figure,
}

fn constants() -> impl Iterator<Item = Constant> {
    // A test proves that every line but the heading is a row.
    CONSTANTS.lines().filter_map(row)
}

fn row(line: &'static str) -> Option<Constant> {
    let mut cells = line.split('\t');
    let (group, key) = (cells.next()?, cells.next()?);
    let mut number = || cells.next()?.parse().ok();
    let (value, low, high) = (number()?, number()?, number()?);
    Some(Constant { group, key, figure: Figure([low, value, high]) })
}

/// The method with its figures.
#[derive(Debug, Clone)]
pub struct Energy {
    method: Method,
    gpus: Vec<Constant>,
    gpu_watts: Option<Figure>,
    gpu_load: Figure,
    core: Figure,
    memory: Figure,
    gpu_node: Figure,
    cpu_node: Figure,
    pue: Figure,
    /// Of a type that is not known.
    other_gpu: Figure,
    /// Whether what meters counted is taken.
    metered: bool,
}

impl Energy {
    /// A method; what the site knows takes the place of the constants.
    pub fn new(method: Method, site: &Site) -> Self {
        let constants: Vec<Constant> = constants().collect();
        let find = |group: &str, key: &str| {
            let found = constants.iter().find(|row| row.group == group && row.key == key);
            found.map_or(Figure::exactly(0.0), |row| row.figure)
        };
        let known = |value: Option<f64>| value.map(Figure::exactly);
        let gpus = constants.iter().filter(|row| row.group == "gpu").copied().collect();
        match method {
            Method::Estimate => Self {
                method,
                gpus,
                gpu_watts: known(site.gpu_watts),
                gpu_load: find("factor", "gpu-load"),
                core: known(site.core_watts).unwrap_or_else(|| find("factor", "core")),
                memory: find("factor", "memory"),
                gpu_node: find("factor", "gpu-node"),
                cpu_node: find("factor", "cpu-node"),
                pue: known(site.pue).unwrap_or_else(|| find("factor", "pue")),
                other_gpu: find("gpu", "*"),
                metered: true,
            },
            Method::Flat => {
                let one = Figure::exactly(1.0);
                Self {
                    method,
                    gpus,
                    gpu_watts: Some(known(site.gpu_watts).unwrap_or_else(|| find("flat", "gpu"))),
                    gpu_load: one,
                    core: known(site.core_watts).unwrap_or_else(|| find("flat", "core")),
                    memory: Figure::exactly(0.0),
                    gpu_node: one,
                    cpu_node: one,
                    pue: one,
                    other_gpu: find("gpu", "*"),
                    metered: false,
                }
            }
            Method::GreenAlgorithms => {
                let one = Figure::exactly(1.0);
                Self {
                    method,
                    gpus,
                    gpu_watts: known(site.gpu_watts),
                    gpu_load: one,
                    core: known(site.core_watts).unwrap_or_else(|| find("green", "core")),
                    memory: find("green", "memory"),
                    gpu_node: one,
                    cpu_node: one,
                    pue: known(site.pue).unwrap_or_else(|| find("green", "pue")),
                    other_gpu: find("green", "gpu"),
                    metered: false,
                }
            }
        }
    }

    /// Its kilowatt-hours; `None` when no run's record says what it held.
    pub fn of(&self, held: &Held) -> Option<Range> {
        if !held.is_recorded() {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "two digits of it are told")]
        let amount = |count: u64| Figure::exactly(count as f64);
        // The figure is per GB, the sum in MiB.
        let gigabytes = Figure::exactly(1.048_576 / 1000.0);
        let rest = |share: HostTime| {
            let memory = amount(share.mib_seconds).times(gigabytes).times(self.memory);
            amount(share.core_seconds).times(self.core).plus(memory)
        };
        let load = self.load(held);
        let gpus = load.gpus.iter().fold(Figure::exactly(0.0), |sum, (name, seconds)| {
            sum.plus(amount(*seconds).times(self.board(name)).times(self.gpu_load))
        });
        let with_gpus = gpus.plus(rest(load.beside_gpus)).times(self.gpu_node);
        let estimated = with_gpus.plus(rest(load.on_cpus).times(self.cpu_node));
        let watt_seconds = estimated.plus(self.joules(held)).times(self.pue);
        Some(self.range(watt_seconds.times(Figure::exactly(1.0 / 3_600_000.0))))
    }

    /// Heeds no meter: those of the site see a part of a node only.
    #[must_use]
    pub fn without_meters(self) -> Self {
        Self { metered: false, ..self }
    }

    /// What meters counted, in kilowatt-hours of the nodes alone, and its share of all; `None` where
    /// no run's energy was measured.
    pub fn measured(&self, held: &Held) -> Option<(f64, f64)> {
        let kwh = self.joules(held).0[1] / 3_600_000.0;
        let all = self.of(held)?.value / self.pue.0[1];
        (kwh > 0.0).then(|| (kwh, kwh / all))
    }

    fn joules(&self, held: &Held) -> Figure {
        #[expect(clippy::cast_precision_loss, reason = "two digits of it are told")]
        let joules = if self.metered { held.metered.joules as f64 } else { 0.0 };
        Figure::exactly(joules)
    }

    /// What it has to estimate.
    fn load<'h>(&self, held: &'h Held) -> Cow<'h, Load> {
        if self.metered && held.metered.runs > 0 {
            Cow::Owned(held.unmetered())
        } else {
            Cow::Borrowed(&held.load)
        }
    }

    /// What it rests on, as far as `held` needs it.
    pub fn assumptions(&self, held: &Held) -> Vec<Assumption> {
        let mut said = Vec::new();
        let mut say = |what: &str, figure: Figure, unit| {
            said.push(Assumption { what: what.to_owned(), figure: self.range(figure), unit });
        };
        let load = self.load(held);
        let gpus = !load.gpus.is_empty();
        let runs = held.runs > held.metered.runs || !self.metered;
        match self.gpu_watts {
            Some(watts) if gpus => say("GPU", watts, "W"),
            _ => {
                for name in load.gpus.keys() {
                    let what = match (name.as_str(), self.find(name)) {
                        ("", _) => "GPU of no recorded type".to_owned(),
                        (name, Some(_)) => format!("GPU {name}"),
                        (name, None) => format!("GPU {name} (not known here)"),
                    };
                    say(&what, self.board(name), "W");
                }
            }
        }
        let estimate = self.method == Method::Estimate;
        if gpus && estimate {
            say("GPU load", self.gpu_load, "");
        }
        if runs {
            say("core", self.core, "W");
        }
        if runs && self.method != Method::Flat {
            say("memory", self.memory, "W/GB");
        }
        if estimate && gpus {
            say("GPU node", self.gpu_node, "times");
        }
        if estimate && load.on_cpus.core_seconds > 0 {
            say("CPU node", self.cpu_node, "times");
        }
        if self.method != Method::Flat {
            say("PUE", self.pue, "");
        }
        said
    }

    /// A figure with its range, where the method claims one.
    fn range(&self, figure: Figure) -> Range {
        let [low, value, high] = figure.0;
        Range { value, bounds: (self.method == Method::Estimate).then_some((low, high)) }
    }

    /// What it leaves out.
    pub fn missing(&self) -> Vec<&'static str> {
        match self.method {
            Method::Estimate => vec!["storage", "network"],
            Method::GreenAlgorithms => vec!["the rest of the node", "storage", "network"],
            Method::Flat => vec!["memory", "the rest of the node", "storage", "network", "cooling"],
        }
    }

    /// Board power of a GPU type; of a slice of a board (`1g.10gb`) its share.
    fn board(&self, name: &str) -> Figure {
        if let Some(watts) = self.gpu_watts {
            return watts;
        }
        let whole = self.find(name).map_or(self.other_gpu, |row| row.figure);
        whole.times(Figure::exactly(slices(name).map_or(1.0, |slices| f64::from(slices) / 7.0)))
    }

    /// The row whose key is the longest that stands in the name.
    fn find(&self, name: &str) -> Option<&Constant> {
        let mut plain = String::new();
        for c in name.chars() {
            if c.is_ascii_alphanumeric() {
                plain.push(c.to_ascii_lowercase());
            } else if !plain.ends_with('-') {
                plain.push('-');
            }
        }
        let fits = |key: &str| {
            plain.match_indices(key).any(|(at, _)| {
                // `a10` is not in `a100`, nor `30` in `130`.
                let digit = |text: &str, last: bool| {
                    let c = if last { text.chars().next_back() } else { text.chars().next() };
                    c.is_some_and(|c| c.is_ascii_digit())
                };
                let begins_with_digit = digit(key, false) && digit(&plain[..at], true);
                !begins_with_digit && !digit(&plain[at + key.len()..], false)
            })
        };
        let longest =
            |row: &Constant| row.key.split('|').filter(|key| fits(key)).map(str::len).max();
        let fitting = self.gpus.iter().filter_map(|row| Some((longest(row)?, row)));
        fitting.max_by_key(|(length, _)| *length).map(|(_, row)| row)
    }
}

/// The compute slices out of seven of a partitioned GPU (MIG): 3 of `a100_3g.20gb`.
fn slices(name: &str) -> Option<u8> {
    let (before, _) = name.split_once("g.")?;
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().filter(|slices| (1..=7).contains(slices))
}

/// Grams of carbon dioxide for a kilowatt-hour, and whose figure that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carbon {
    /// Grams for a kilowatt-hour.
    pub grams_per_kwh: u32,
    /// Who says so.
    pub source: String,
}

impl Carbon {
    /// Its kilograms.
    pub fn kilograms(&self, energy: Range) -> Range {
        energy.times(f64::from(self.grams_per_kwh) / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Drawn;

    const HOUR: u64 = 3600;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9 * expected.max(1.0), "{found} is not {expected}");
    }

    fn held(gpu: &str, gpu_hours: u64, core_hours: u64, gib_hours: u64) -> Held {
        let share =
            HostTime { core_seconds: core_hours * HOUR, mib_seconds: gib_hours * 1024 * HOUR };
        let gpus = (gpu_hours > 0).then(|| (gpu.to_owned(), gpu_hours * HOUR));
        let load = Load::of(gpus.into_iter().collect(), share);
        Held { runs: 1, load, ..Held::default() }
    }

    #[test]
    fn every_line_of_the_constants_is_a_row_that_says_where_it_is_from() {
        let lines = CONSTANTS.lines().filter(|line| !line.starts_with('#')).skip(1);
        for line in lines {
            let Figure([low, value, high]) = row(line).unwrap_or_else(|| panic!("{line}")).figure;
            assert!(0.0 < low && low <= value && value <= high, "{line}");
            let cells: Vec<&str> = line.split('\t').collect();
            assert_eq!(cells.len(), 8, "{line}");
            assert!(cells[5..].iter().all(|cell| !cell.is_empty()), "{line}");
        }
        let energy = Energy::new(Method::Estimate, &Site::default());
        for factor in [energy.gpu_load, energy.core, energy.memory, energy.gpu_node, energy.pue] {
            assert!(factor.0[0] > 0.0);
        }
    }

    #[test]
    fn the_flat_method_gives_the_published_example_of_slurmwise() {
        // 24 GPU-hours x 400 W + 384 core-hours x 15 W = 9600 + 5760 Wh = 15.36 kWh;
        // 15.36 kWh x 370 g = 5683.2 g.
        let energy = Energy::new(Method::Flat, &Site::default());
        let used = energy.of(&held("a100", 24, 384, 1000)).expect("recorded");
        near(used.value, 15.36);
        assert_eq!(used.bounds, None);
        let carbon = Carbon { grams_per_kwh: 370, source: "--carbon-intensity".to_owned() };
        near(carbon.kilograms(used).value, 5.6832);
    }

    #[test]
    fn a_gpu_run_by_hand() {
        // F201, F202, F203, F205, F212: of what the run held, not of all that its node has.
        // One hour of 1 a100-sxm4 (400 W), 10 cores, 100 GiB:
        // GPU 400 x 0.6 = 240 W; cores 10 x 5 = 50 W; memory 107.3741824 GB x 0.15 = 16.10612736 W;
        // sum 306.10612736 W x 1.3 (GPU node) x 1.56 (PUE) = 620.7832262... W.
        let energy = Energy::new(Method::Estimate, &Site::default());
        let used = energy.of(&held("a100-sxm4", 1, 10, 100)).expect("recorded");
        near(used.value, 306.106_127_36 * 1.3 * 1.56 / 1000.0);
        // Low: (400 x 0.2 + 10 x 2 + 107.37... x 0.05) x 1.15 x 1.1.
        // High: (400 x 1 + 10 x 12 + 107.37... x 0.37) x 1.6 x 1.6.
        let (low, high) = used.bounds.expect("a range");
        near(low, (80.0 + 20.0 + 5.368_709_12) * 1.15 * 1.1 / 1000.0);
        near(high, (400.0 + 120.0 + 39.728_447_488) * 1.6 * 1.6 / 1000.0);
    }

    #[test]
    fn what_the_site_knows_replaces_the_constant_and_its_range() {
        // 8 cores for one hour: 8 x 7 W x 1.2 (1-1.5) x PUE 1.25.
        let site = Site { pue: Some(1.25), core_watts: Some(7.0), gpu_watts: Some(500.0) };
        let energy = Energy::new(Method::Estimate, &site);
        let used = energy.of(&held("", 0, 8, 0)).expect("recorded");
        near(used.value, 0.056 * 1.2 * 1.25);
        let (low, high) = used.bounds.expect("a range");
        near(low, 0.056 * 1.25);
        near(high, 0.056 * 1.5 * 1.25);
        let said = energy.assumptions(&held("x", 1, 8, 0));
        for (what, value) in [("GPU", 500.0), ("PUE", 1.25)] {
            let exactly = Range { value, bounds: Some((value, value)) };
            assert!(said.iter().any(|a| a.what == what && a.figure == exactly), "{said:?}");
        }
    }

    #[test]
    fn gpu_types_are_known_by_the_names_that_sites_give() {
        let energy = Energy::new(Method::Estimate, &Site::default());
        for (name, watts) in [
            ("a100", 400.0),
            // The name that NVML gives, which AutoDetect=nvml uses.
            ("nvidia_a100-sxm4-80gb", 400.0),
            ("nvidia_a100-pcie-40gb", 250.0),
            ("A10", 150.0),
            ("tesla_v100-sxm2-32gb", 300.0),
            ("v100-32g", 300.0),
            ("nvidia_geforce_rtx_2080_ti", 250.0),
            ("rtx2080ti", 250.0),
            ("rtx_a6000", 300.0),
            ("nvidia_rtx_6000_ada_generation", 300.0),
            ("l40s", 350.0),
            ("nvidia_h100_80gb_hbm3", 700.0),
            ("gh200", 900.0),
            ("mi250x", 280.0),
            // Not a 40 (A40), a 30 or an a10: not known.
            ("rtxa4000", 300.0),
            ("a1000", 300.0),
            ("quantum9", 300.0),
            ("", 300.0),
        ] {
            near(energy.board(name).0[1], watts);
        }
        assert!(energy.find("rtxa4000").is_none() && energy.find("a1000").is_none());
        // A slice of three sevenths of an A100.
        near(energy.board("a100_3g.20gb").0[1], 400.0 * 3.0 / 7.0);
        near(energy.board("nvidia_a100_1g.5gb").0[1], 400.0 / 7.0);
    }

    #[test]
    fn green_algorithms_by_its_formula() {
        // E = t x (cores x P x use + memory x 0.3725 W) x PUE: 2 GPUs of a type nobody knows for an
        // hour beside 4 cores and 10 GB: (400 + 48 + 3.725) x 1.56 W.
        let energy = Energy::new(Method::GreenAlgorithms, &Site::default());
        let mut two = held("quantum", 2, 4, 0);
        // Ten GB are 9536.743 MiB; the sum is in whole MiB-seconds.
        two.load.beside_gpus.mib_seconds = 10_000_000_000 * HOUR / (1 << 20);
        let used = energy.of(&two).expect("recorded");
        near((used.value * 1e5).round() / 1e5, 0.704_69);
        assert_eq!(used.bounds, None);
        assert!(energy.missing().contains(&"the rest of the node"));
    }

    #[test]
    fn what_a_meter_counted_replaces_the_estimate_of_its_run() {
        // One run of 8 core-hours, metered at 2 MJ; another of 8 core-hours that nobody measured:
        // (2 MJ + 8 x 3600 s x 5 W x 1.2) x PUE 1.56; of the estimate alone it would be twice the
        // second term.
        let mut metered = held("", 0, 8, 0);
        metered.meter(Some(Drawn::Own(2_000_000)));
        let mut both = held("", 0, 8, 0);
        both.merge(&metered);
        let energy = Energy::new(Method::Estimate, &Site::default());
        let used = energy.of(&both).expect("recorded");
        near(used.value, (2_000_000.0 + 8.0 * 3600.0 * 5.0 * 1.2) * 1.56 / 3.6e6);
        // The meter is exact but for the machine room: PUE from 1.1 to 1.6.
        let (low, high) = energy.of(&metered).expect("recorded").bounds.expect("a range");
        near(low, 2.0 * 1.1 / 3.6);
        near(high, 2.0 * 1.6 / 3.6);
        let what = |held| energy.assumptions(held).into_iter().map(|row| row.what);
        assert_eq!(what(&metered).collect::<Vec<_>>(), ["PUE"]);
        assert_eq!(what(&both).collect::<Vec<_>>(), ["core", "memory", "CPU node", "PUE"]);
        // 2 of the 2.1728 MJ, and nothing where the meters see a part of a node only.
        let (kwh, share) = energy.measured(&both).expect("measured");
        near(kwh, 2.0 / 3.6);
        near(share, 2_000_000.0 / 2_172_800.0);
        let blind = energy.clone().without_meters();
        assert_eq!(blind.measured(&both), None);
        near(blind.of(&both).expect("recorded").value, 2.0 * 8.0 * 0.006 * 1.56);
        // What others on the node drew too is no measurement of the run.
        let mut shared = held("", 0, 8, 0);
        shared.meter(Some(Drawn::Shared(2_000_000)));
        assert_eq!(energy.of(&shared), energy.of(&held("", 0, 8, 0)));
        // Formulas stay formulas.
        for method in [Method::Flat, Method::GreenAlgorithms] {
            let formula = Energy::new(method, &Site::default());
            assert_eq!(formula.of(&metered), formula.of(&held("", 0, 8, 0)));
        }
    }

    #[test]
    fn what_is_not_recorded_has_no_energy() {
        let energy = Energy::new(Method::Estimate, &Site::default());
        let unrecorded = Held { runs: 2, unrecorded: 2, ..Held::default() };
        assert_eq!(energy.of(&unrecorded), None);
        assert_eq!(energy.of(&Held::default()).map(|range| range.value), Some(0.0));
    }
}
