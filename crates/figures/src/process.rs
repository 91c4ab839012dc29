//! What the system knows about this process, under the names that every client library gives it. Asked when somebody reads. Where
//! the system does not say, the figure is left out.

use crate::text::Sheet;

#[cfg(target_os = "linux")]
pub(crate) fn write(sheet: &mut Sheet) {
    use procfs::process::{LimitValue, Process};

    use crate::table::{CPU, FILES, MEMORY, MOST_FILES, STARTED, VIRTUAL_MEMORY};

    let Ok(process) = Process::myself() else { return };
    if let Ok(stat) = process.stat() {
        let ticks = procfs::ticks_per_second();
        // Exact as long as there are fewer ticks than a float counts: for millions of years.
        let seconds = |count: u64| count as f64 / ticks as f64;
        sheet.only(&CPU, seconds(stat.utime.saturating_add(stat.stime)));
        sheet.only(&MEMORY, stat.rss.saturating_mul(procfs::page_size()));
        sheet.only(&VIRTUAL_MEMORY, stat.vsize);
        if let Ok(boot) = procfs::boot_time_secs() {
            sheet.only(&STARTED, boot as f64 + seconds(stat.starttime));
        }
    }
    if let Ok(files) = process.fd_count() {
        sheet.only(&FILES, files);
    }
    if let Ok(limits) = process.limits()
        && let LimitValue::Value(most) = limits.max_open_files.soft_limit
    {
        sheet.only(&MOST_FILES, most);
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn write(_sheet: &mut Sheet) {}
