//! The report of `pleach paths --event`: where events occurred, and the paths that led there.

mod rows;
mod text;

use crate::estimated::NoSuchFunction;
use crate::names::meant;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_decide::support::wilson_interval;
use pleach_profile::Profile;
use pleach_profile::events::{EventPlace, EventProfile, EventSource, Place, Step};
use rows::{PathRow, path_rows};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Names of functions by identifier and graph.
type FunctionNames<'p> = FxHashMap<(FunctionId, CfgHash), &'p str>;

/// What is shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventOptions {
    /// Only this event.
    pub event: Option<String>,
    /// Only places in this function.
    pub function: Option<String>,
    /// Places of each event; `None`: all.
    pub top: Option<usize>,
}

/// Why there is nothing to show.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventsError {
    /// The profile has no events.
    #[error(
        "the profile has no events: none occurred, or it was recorded without --event (`pleach record --event page-faults`)"
    )]
    None,
    /// It has others.
    #[error("the profile has no event {name}, but {}", known.join(", "))]
    Other {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// No function has the name.
    #[error(transparent)]
    Function(#[from] NoSuchFunction),
}

/// A share with its 90 % interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Share {
    share: f64,
    low: f64,
    high: f64,
}

impl Share {
    /// `observations`: independent ones.
    fn new(part: u64, whole: u64, observations: f64) -> Self {
        let share = part as f64 / whole.max(1) as f64;
        let (low, high) = match observations > 0.0 {
            true => wilson_interval(share.min(1.0), observations),
            false => (0.0, 1.0),
        };
        Self { share, low, high }
    }
}

/// Independent observations with the same information as weights with this sum and sum of squares (Kish 1965).
fn effective(weight: u64, squares: u64) -> f64 {
    let (weight, squares) = (
        weight as f64 / EventProfile::SCALE,
        squares as f64 / EventProfile::SCALE,
    );
    if squares > 0.0 { weight * weight / squares } else { 0.0 }
}

/// The same for all samples of an event. The kernel's samples may be all events, whose shares are then exact.
fn effective_of(event: &EventProfile) -> f64 {
    let number = effective(event.weight, event.squares);
    if event.source != EventSource::Kernel {
        return number;
    }
    let all = event.weight as f64 / EventProfile::SCALE;
    match event.observations as f64 >= all {
        true => f64::INFINITY,
        false => number / (1.0 - event.observations as f64 / all),
    }
}

/// A place and the paths there.
#[derive(Clone, PartialEq, Debug)]
pub struct PlaceRow<'p> {
    /// The place.
    pub place: &'p EventPlace,
    /// Its share of the event.
    pub share: Share,
    /// The paths, with their shares of the place; the most frequent first.
    pub paths: Vec<PathRow<'p>>,
}

/// An event.
#[derive(Clone, PartialEq, Debug)]
pub struct EventReport<'p> {
    /// The event.
    pub event: &'p EventProfile,
    /// Its places, those with most events first.
    pub places: Vec<PlaceRow<'p>>,
    /// Other places, and their part of the events.
    pub others: (u64, f64),
    /// The part of the events at places that no burst passed.
    pub unmatched: f64,
}

/// The events of a profile.
#[derive(Clone, PartialEq, Debug)]
pub struct Events<'p> {
    /// By event.
    pub reports: Vec<EventReport<'p>>,
    names: FunctionNames<'p>,
}

impl<'p> Events<'p> {
    /// The events of a profile that were asked for.
    ///
    /// # Errors
    /// There are none.
    pub fn new(profile: &'p Profile, options: &EventOptions) -> Result<Self, EventsError> {
        if profile.events.is_empty() {
            return Err(EventsError::None);
        }
        let wanted = |event: &&EventProfile| options.event.as_ref().is_none_or(|name| *name == event.name);
        let events: Vec<_> = profile.events.iter().filter(wanted).collect();
        if events.is_empty() {
            return Err(EventsError::Other {
                name: options.event.clone().unwrap_or_default(),
                known: profile.events.iter().map(|event| event.name.clone()).collect(),
            });
        }
        let functions = match &options.function {
            None => None,
            Some(name) => {
                let all = profile.functions.iter();
                let found = meant(all, |f| (&f.name, f.id.to_string()), name);
                let found = found.map_err(|similar| NoSuchFunction {
                    name: name.clone(),
                    similar,
                })?;
                Some(found.iter().map(|f| f.id).collect::<Vec<_>>())
            }
        };
        let is_shown = |place: &EventPlace| match (&functions, &place.place) {
            (None, _) => true,
            (Some(functions), Place::Block(step)) => functions.contains(&step.id),
            (Some(_), _) => false,
        };
        Ok(Self {
            reports: events
                .into_iter()
                .map(|event| EventReport::new(event, options.top, &is_shown))
                .collect(),
            names: profile
                .functions
                .iter()
                .map(|f| ((f.id, f.cfg_hash), f.name.as_str()))
                .collect(),
        })
    }

    /// For scripts: an array of events.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let views: Vec<_> = self.reports.iter().map(|report| report.view(&self.names)).collect();
        Ok(serde_json::to_string_pretty(&views)? + "\n")
    }
}

impl<'p> EventReport<'p> {
    fn new(event: &'p EventProfile, top: Option<usize>, is_shown: &dyn Fn(&EventPlace) -> bool) -> Self {
        let observations = effective_of(event);
        let share = |weight: u64| weight as f64 / event.weight.max(1) as f64;
        let mut places: Vec<&EventPlace> = event.places.iter().filter(|place| is_shown(place)).collect();
        places.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.key().cmp(&b.key())));
        let rows: Vec<_> = places
            .iter()
            .take(top.unwrap_or(usize::MAX))
            .map(|&place| PlaceRow {
                place,
                share: Share::new(place.weight, event.weight, observations),
                paths: path_rows(place),
            })
            .collect();
        let rest: u64 = places[rows.len()..].iter().map(|place| place.weight).sum();
        let unmatched = event.places.iter().filter(|place| place.bursts == 0);
        let unmatched: u64 = unmatched.map(|place| place.weight).sum();
        Self {
            event,
            others: ((places.len() - rows.len()) as u64, share(rest)),
            unmatched: share(unmatched),
            places: rows,
        }
    }

    fn view(&self, names: &FunctionNames<'p>) -> EventView<'p> {
        EventView {
            event: &self.event.name,
            source: self.event.source,
            events: self.event.weight as f64 / EventProfile::SCALE,
            observations: self.event.observations,
            distances: self.event.distances,
            left_out: self.event.left_out as f64 / EventProfile::SCALE,
            unmatched: self.unmatched,
            places: self.places.iter().map(|row| row.view(names)).collect(),
        }
    }
}

#[derive(Serialize)]
struct EventView<'p> {
    event: &'p str,
    source: EventSource,
    events: f64,
    observations: u64,
    distances: (u32, u32),
    left_out: f64,
    unmatched: f64,
    places: Vec<PlaceView<'p>>,
}

#[derive(Serialize)]
struct PlaceView<'p> {
    #[serde(skip_serializing_if = "str::is_empty")]
    what: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<StepView<'p>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'p str>,
    #[serde(flatten)]
    share: Share,
    observations: u64,
    bursts: u64,
    paths: Vec<PathView<'p>>,
}

#[derive(Serialize)]
struct PathView<'p> {
    steps: Vec<StepView<'p>>,
    /// Earlier blocks differ, or are not known.
    cut: bool,
    #[serde(flatten)]
    share: Share,
    bursts: u64,
}

#[derive(Serialize)]
struct StepView<'p> {
    function: Option<&'p str>,
    function_id: String,
    cfg_hash: String,
    block: BlockIndex,
    line: u32,
}

fn step_view<'p>(step: &Step, names: &FunctionNames<'p>) -> StepView<'p> {
    StepView {
        function: names.get(&(step.id, step.cfg_hash)).copied(),
        function_id: step.id.to_string(),
        cfg_hash: step.cfg_hash.to_string(),
        block: step.block,
        line: step.line,
    }
}

impl<'p> PlaceRow<'p> {
    fn view(&self, names: &FunctionNames<'p>) -> PlaceView<'p> {
        let (mut block, mut file, mut function) = (None, None, None);
        match &self.place.place {
            Place::Block(step) => block = Some(step_view(step, names)),
            Place::Code(name, symbol) => {
                file = Some(name.as_str());
                function = Some(symbol.as_str()).filter(|symbol| !symbol.is_empty());
            }
            Place::Elsewhere => {}
        }
        PlaceView {
            what: &self.place.what,
            block,
            file,
            function,
            share: self.share,
            observations: self.place.observations,
            bursts: self.place.bursts,
            paths: self
                .paths
                .iter()
                .map(|path| PathView {
                    steps: path.steps.iter().map(|step| step_view(step, names)).collect(),
                    cut: path.cut,
                    share: path.share,
                    bursts: path.bursts,
                })
                .collect(),
        }
    }
}
