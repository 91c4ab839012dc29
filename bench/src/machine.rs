//! What the figures were taken on.

use std::fs::{self, File};
use std::io::Write as _;

use crate::stats::{Figure, ms};
use crate::subject::Places;
use crate::{Failure, clock};

const SYNCS: usize = 300;

/// The processor, how busy it is already, and how long the disk takes for what every durable answer waits for.
pub(crate) fn describe(places: &Places) -> Result<String, Failure> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processors = read("/proc/cpuinfo");
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, model)| model.trim());
    let load = read("/proc/loadavg");
    let load = load.split_whitespace().next().unwrap_or("unknown");
    let sync = sync_time(places)?.ok_or("no sample")?;
    let (middle, p99) = (sync.middle, sync.p99.unwrap_or_default());
    Ok(format!(
        "{cores} cores of {model}; load before the bench {load}; 4 KiB written and synced in {middle:.2} ms (p99 {p99:.2}). \
         Other work on the machine spoils the figures, and it shows in these two numbers first."
    ))
}

/// How long it takes to write 4 KiB to the disk of the data folders and to be told that they are there, in ms.
fn sync_time(places: &Places) -> Result<Option<Figure>, Failure> {
    let folder = places.fresh_data()?;
    let mut file = File::create(folder.path().join("sync"))?;
    let mut samples = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begin = clock::now();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        samples.push(ms(begin.elapsed()));
    }
    Ok(Figure::of(samples, 0))
}
