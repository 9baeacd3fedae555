//! Amounts of what runs held, as answers tell them: hours, energy with its range, rates.

use serde::Serialize;

use super::Question;
use crate::answer::scope;
use crate::config::{Config, Origin};
use crate::history::{Assumption, Carbon, Energy, Held, Metered, Method, Range, Site};
use crate::math::{self, Share};
use crate::model::Notice;
use crate::sched::slurm::Jobs;
use crate::text;

/// A failure rate with its denominator and its 95 % (Wilson) interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    /// Failed runs.
    pub failed: u64,
    /// Runs that completed or failed.
    pub of: u64,
    /// The share; `None` where nothing completed or failed.
    pub rate: Option<f64>,
    /// The lower end of the interval.
    pub low: Option<f64>,
    /// The upper end of the interval.
    pub high: Option<f64>,
}

/// What runs held, for as long as they held it. `None` is not recorded, never zero.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Amount {
    /// The runs.
    pub runs: u64,
    /// Those whose record does not say what they held: they are in none of the sums.
    pub unrecorded: u64,
    /// Hours of GPUs.
    pub gpu_hours: Option<f64>,
    /// Hours of CPU cores as the scheduler counts them.
    pub core_hours: Option<f64>,
    /// Hours of nodes that were held whole or in part.
    pub node_hours: Option<f64>,
    /// Kilowatt-hours.
    pub kwh: Option<Estimate>,
    /// Kilograms of carbon dioxide, where the site's factor is known.
    pub co2_kg: Option<Estimate>,
}

/// An amount with its range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The amount.
    pub value: f64,
    /// The least that it may be; `None` where the method claims no range.
    pub low: Option<f64>,
    /// The most.
    pub high: Option<f64>,
}

/// How energy was worked out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnergyNotes {
    /// `estimate`, `flat` or `green-algorithms`; only the first takes what meters counted.
    pub method: &'static str,
    /// What meters counted, which the energy holds; `None` where nothing in it is measured.
    pub measured: Option<Measured>,
    /// What it rests on.
    pub assumptions: Vec<AssumptionRow>,
    /// What it leaves out.
    pub missing: Vec<&'static str>,
    /// Grams of CO2 for a kilowatt-hour, where somebody has told.
    pub carbon_grams_per_kwh: Option<u32>,
    /// Who told.
    pub carbon_source: Option<String>,
}

/// Energy that meters counted, of runs that had their nodes to themselves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// The runs.
    pub runs: u64,
    /// Kilowatt-hours of their nodes, without the machine room.
    pub kwh: f64,
    /// Its share of the energy of all runs.
    pub share: f64,
    /// What counted, where it is known: `ipmi`.
    pub meter: Option<String>,
}

/// A figure that the energy rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AssumptionRow {
    /// Of what: a GPU type, a core, the PUE.
    pub what: String,
    /// How much.
    #[serde(flatten)]
    pub figure: Estimate,
    /// Its unit; `times` for a factor, empty for a ratio.
    pub unit: &'static str,
}

/// Turns what was held into hours, energy and carbon.
pub(in crate::answer) struct Meter {
    method: Method,
    energy: Energy,
    carbon: Option<Carbon>,
    /// Whether GPUs are counted here at all.
    counts_gpus: bool,
    /// What counts energy here, where it is known.
    counter: Option<String>,
}

/// What counts energy on a cluster, where any was recorded that is a run's own: its configuration
/// says. Whose files those are that were given nobody knows.
pub(in crate::answer) fn counter(source: Option<&Jobs<'_>>, held: &Held) -> Option<String> {
    source.filter(|_| held.metered.runs > 0).and_then(Jobs::energy_meter)
}

impl Meter {
    pub(in crate::answer) fn new(
        config: &Config,
        question: &Question,
        counts_gpus: bool,
        counter: Option<String>,
    ) -> Self {
        let flag = |watts: Option<u32>| watts.map(f64::from);
        let (gpu_watts, core_watts) = (flag(question.gpu_watts), flag(question.cpu_watts));
        let told = &config.settings.energy;
        let set = |number: u32| (number > 0).then(|| f64::from(number));
        let site = match question.method {
            Method::Estimate => Site {
                pue: set(told.pue_percent).map(|percent| percent / 100.0),
                gpu_watts: gpu_watts.or(set(told.gpu_watts)),
                core_watts: core_watts.or(set(told.cpu_watts)),
            },
            // Flat figures are for comparing: the same everywhere unless somebody asks for others.
            Method::Flat | Method::GreenAlgorithms => Site { pue: None, gpu_watts, core_watts },
        };
        let energy = Energy::new(question.method, &site);
        Self {
            method: question.method,
            energy: if counter.as_deref().is_some_and(sees_a_part) {
                energy.without_meters()
            } else {
                energy
            },
            carbon: question.carbon.clone().or_else(|| told_carbon(config)),
            counts_gpus,
            counter,
        }
    }

    pub(in crate::answer) fn amount(&self, held: &Held) -> Amount {
        let hours = scope::hours;
        let energy = self.energy.of(held);
        let carbon = self.carbon.as_ref();
        Amount {
            runs: held.runs,
            unrecorded: held.unrecorded,
            gpu_hours: held.gpu_seconds().filter(|_| self.counts_gpus).map(hours),
            core_hours: held.core_seconds().map(hours),
            node_hours: held.node_seconds().map(hours),
            kwh: energy.map(Estimate::from),
            co2_kg: energy.and_then(|energy| Some(carbon?.kilograms(energy).into())),
        }
    }
}

impl Meter {
    /// How energy was worked out, as far as `held` needs it.
    pub(in crate::answer) fn notes(&self, held: &Held) -> EnergyNotes {
        EnergyNotes {
            method: match self.method {
                Method::Estimate => "estimate",
                Method::Flat => "flat",
                Method::GreenAlgorithms => "green-algorithms",
            },
            measured: self.energy.measured(held).map(|(kwh, share)| Measured {
                runs: held.metered.runs,
                kwh: four_digits(kwh),
                share: four_decimals(share),
                meter: self.counter.clone(),
            }),
            assumptions: self.energy.assumptions(held).into_iter().map(Into::into).collect(),
            missing: self.energy.missing(),
            carbon_grams_per_kwh: self.carbon.as_ref().map(|carbon| carbon.grams_per_kwh),
            carbon_source: self.carbon.as_ref().map(|carbon| carbon.source.clone()),
        }
    }
}

impl Meter {
    /// What was recorded of energy and is not used.
    pub(in crate::answer) fn left_out(&self, held: &Held) -> Vec<Notice> {
        let Metered { runs, shared, absurd, .. } = held.metered;
        let part = self.counter.as_deref().filter(|counter| sees_a_part(counter));
        let part = part.map(|counter| format!("counted by {counter}, which sees a part of a node"));
        let said = [
            (if part.is_some() { runs } else { 0 }, part.as_deref().unwrap_or_default()),
            (shared, "that is of nodes that others may have used too"),
            (absurd, "that no node can draw"),
        ];
        let said =
            said.into_iter().filter(|(runs, _)| *runs > 0 && self.method == Method::Estimate);
        said.map(|(runs, what)| {
            let text = format!(
                "{} with a measured energy {what}: estimated instead",
                text::count(runs, "run")
            );
            Notice::info("energy-not-used", text)
        })
        .collect()
    }
}

/// Whether a meter of Slurm counts only the processors or only the GPUs of a node (`man slurm.conf`,
/// `AcctGatherEnergyType`).
fn sees_a_part(meter: &str) -> bool {
    matches!(meter, "rapl" | "gpu")
}

/// The carbon intensity of the settings, with the layer that set it.
fn told_carbon(config: &Config) -> Option<Carbon> {
    let grams_per_kwh = config.settings.energy.carbon_grams_per_kwh;
    let (_, origin) = config.origins.get("energy.carbon_grams_per_kwh")?;
    (grams_per_kwh > 0 && *origin != Origin::Default)
        .then(|| Carbon { grams_per_kwh, source: origin.to_string() })
}

pub(in crate::answer) fn rate(failed: u64, completed: u64) -> Rate {
    let of = failed + completed;
    let share = math::wilson(failed, of);
    let part = |part: fn(&Share) -> f64| share.as_ref().map(part).map(four_decimals);
    Rate {
        failed,
        of,
        rate: part(|share| share.value),
        low: part(|share| share.low),
        high: part(|share| share.high),
    }
}

pub(in crate::answer) fn by_waste(a: &Amount, b: &Amount) -> std::cmp::Ordering {
    let energy = |amount: &Amount| amount.kwh.map_or(-1.0, |kwh| kwh.value);
    energy(b).total_cmp(&energy(a)).then(b.runs.cmp(&a.runs))
}

impl From<Assumption> for AssumptionRow {
    fn from(assumption: Assumption) -> Self {
        let Assumption { what, figure, unit } = assumption;
        Self { what, figure: figure.into(), unit }
    }
}

impl From<Range> for Estimate {
    fn from(range: Range) -> Self {
        let (low, high) = range.bounds.unzip();
        Self {
            value: four_digits(range.value),
            low: low.map(four_digits),
            high: high.map(four_digits),
        }
    }
}

/// Four decimals: a third of a second of an hour.
fn four_decimals(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// Four significant digits: more than any estimate has.
fn four_digits(value: f64) -> f64 {
    // Through the decimal form, so that the printed number has no tail of binary noise.
    format!("{value:.3e}").parse().unwrap_or(value)
}
