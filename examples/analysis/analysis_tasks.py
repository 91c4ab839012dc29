"""The tasks of the analysis: plain functions. What they print is the log of the job, line by line as it happens."""

import csv
import sys
import time
from pathlib import Path


def load(path, mode):
    """Reads the rows that make sense; says on standard error which do not."""
    file = Path(__file__).parent / path  # a full path stays as it is
    with file.open(newline="", encoding="utf-8") as lines:
        table = list(csv.DictReader(lines))
    print(f"reading {file.name}: {len(table)} rows")
    rows = []
    for number, row in progress("read", table, mode):
        try:
            rows.append({"month": row["date"][:7], "region": row["region"], "amount": float(row["amount"])})
        except (TypeError, ValueError):
            print(f"row {number} is left out: its amount is {row['amount']!r}", file=sys.stderr)
    if not rows:
        raise ValueError(f"{file.name} has no row with an amount")
    return rows


def by_region(rows, mode):
    return total("region", rows, mode)


def by_month(rows, mode):
    return total("month", rows, mode)


def summary(load, by_region, by_month):
    best = max(by_region, key=by_region.get)
    print(f"{len(load)} rows, {round(sum(by_region.values()), 2)} in all, the most in {best}")
    return {"rows": len(load), "total": round(sum(by_region.values()), 2), "regions": by_region, "months": by_month}


def total(column, rows, mode):
    sums = {}
    for _, row in progress(f"added up by {column}", rows, mode):
        sums[row[column]] = sums.get(row[column], 0) + row["amount"]
    return {name: round(sums[name], 2) for name in sorted(sums)}


def progress(what, rows, mode):
    """The rows with their numbers; tells of each tenth. A careful analysis takes its time, so that there is something to follow."""
    for number, row in enumerate(rows, start=1):
        yield number, row
        tenths = number * 10 // len(rows)
        if tenths != (number - 1) * 10 // len(rows):
            print(f"{what} {number} of {len(rows)} rows ({tenths * 10} %)")
            if mode != "fast":
                time.sleep(0.3)
