#!/usr/bin/python3
"""Recurrence rules, compared with Python's dateutil on 1,000 random ones, and on 300 in time zones.

    calendar_rules.py CALENDAR_DAYS

Speaks TAP. Skipped where the package python3-dateutil is missing. Where python3-icalendar is there too, it has to read
every calendar that is asked.
"""
import datetime
import random
import subprocess
import sys
import zoneinfo

try:
    from dateutil.rrule import rruleset, rrulestr
except ImportError:
    print("1..0 # SKIP python3-dateutil is not installed")
    sys.exit(0)
try:
    import icalendar
except ImportError:
    icalendar = None

RULES = 1000
FROM, TO = datetime.date(2024, 1, 1), datetime.date(2032, 1, 1)
DAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
EPOCH = datetime.date(1970, 1, 1)
ZONED, UTC = 300, datetime.timezone.utc
ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "America/Sao_Paulo", "Australia/Lord_Howe",
         "Africa/Cairo", "Pacific/Chatham"]


def random_rule(r):
    freq = r.choice(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"])
    parts = [f"FREQ={freq}"]
    if r.random() < 0.5:
        parts.append(f"INTERVAL={r.randint(1, 5)}")
    if r.random() < 0.4:
        parts.append("BYMONTH=" + ",".join(map(str, sorted(r.sample(range(1, 13), r.randint(1, 4))))))
    by_day = r.random()
    if by_day < 0.3:
        parts.append("BYDAY=" + ",".join(r.sample(DAYS, r.randint(1, 4))))
    elif by_day < 0.5 and freq in ("MONTHLY", "YEARLY"):
        parts.append("BYDAY=" + ",".join(f"{r.choice([-2, -1, 1, 2, 3])}{d}" for d in r.sample(DAYS, r.randint(1, 2))))
    elif by_day < 0.7 and freq != "WEEKLY":
        days = r.sample([d for d in range(-31, 32) if d], r.randint(1, 4))
        parts.append("BYMONTHDAY=" + ",".join(map(str, days)))
    if freq == "WEEKLY" and r.random() < 0.3:
        parts.append("WKST=SU")
    return parts


def event(r):
    """A calendar with one event, and its days according to dateutil."""
    start = datetime.datetime(r.randint(2019, 2027), r.randint(1, 12), r.randint(1, 28))
    all_day = r.random() < 0.5
    if not all_day:
        start += datetime.timedelta(minutes=r.randrange(0, 1440, 15))
    parts = random_rule(r)
    limit = r.random()
    form = "%Y%m%d" if all_day else "%Y%m%dT%H%M%SZ"
    if limit < 0.3:
        parts.append(f"COUNT={r.randint(1, 60)}")
    elif limit < 0.6:
        until = start + datetime.timedelta(minutes=r.randrange(0, 6 * 365 * 1440))
        if all_day:
            until = datetime.datetime(until.year, until.month, until.day)
        parts.append("UNTIL=" + until.strftime(form))
    rule = ";".join(parts)
    naive = rule.replace("Z", "") if not all_day else rule
    occurrences = rruleset()
    occurrences.rrule(rrulestr(naive, dtstart=start))
    horizon = datetime.datetime(TO.year, TO.month, TO.day)
    length = datetime.timedelta(days=r.randint(1, 3)) if all_day else datetime.timedelta(minutes=r.randint(1, 2000))
    excluded = []
    for n, at in enumerate(occurrences):
        if at > horizon or n > 200:
            break
        if r.random() < 0.05:
            excluded.append(at)
    for at in excluded:
        occurrences.exdate(at)
    value = ";VALUE=DATE" if all_day else ""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//EN", "BEGIN:VEVENT", "UID:1", "DTSTAMP:20240101T000000Z",
             f"DTSTART{value}:{start.strftime(form)}", f"DTEND{value}:{(start + length).strftime(form)}", f"RRULE:{rule}"]
    if excluded:
        lines.append(f"EXDATE{value}:" + ",".join(at.strftime(form) for at in excluded))
    lines += ["END:VEVENT", "END:VCALENDAR"]
    folded = []
    for line in lines:  # long lines are folded, as the standard wants
        while len(line) > 70:
            folded.append(line[:70])
            line = " " + line[70:]
        folded.append(line)
    days = set()
    for at in occurrences.between(datetime.datetime(2018, 1, 1), horizon, inc=True):
        day, end = at.date(), at + length
        while datetime.datetime(day.year, day.month, day.day) < end:
            if FROM <= day < TO:
                days.add((day - EPOCH).days)
            day += datetime.timedelta(days=1)
    return "\n".join(folded) + "\n", sorted(days)


def instant(local, zone):
    """The first instant of a local time; None where the clock skips it."""
    at = local.replace(tzinfo=zone).astimezone(UTC)
    return at if at.astimezone(zone).replace(tzinfo=None) == local else None


def zoned_event(r):
    """The same with a TZID, and UNTIL in UTC; None if an occurrence falls into a gap, which dateutil does not know."""
    name = r.choice(ZONES)
    zone, form = zoneinfo.ZoneInfo(name), "%Y%m%dT%H%M%S"
    start = datetime.datetime(2024, 1, 1) + datetime.timedelta(minutes=15 * r.randrange(4 * 24 * 900))
    length, parts, until = datetime.timedelta(minutes=r.randint(1, 3000)), random_rule(r), None
    occurrences = rrulestr(";".join(parts), dtstart=start)
    if r.random() < 0.4:
        until = (start + datetime.timedelta(minutes=r.randrange(4 * 365 * 1440))).replace(tzinfo=zone).astimezone(UTC)
        parts.append("UNTIL=" + until.strftime(form + "Z"))
    first = instant(start, zone)
    end = first and (first + length).astimezone(zone).replace(tzinfo=None)
    if not first or instant(end, zone) != first + length:
        return None
    days, excluded = set(), []
    for n, local in enumerate(occurrences):
        at = instant(local, zone)
        if not at:
            return None
        if local.date() > TO or (until and at > until):
            break
        if n < 200 and r.random() < 0.05:
            excluded.append(local)
            continue
        day = at.date()
        while datetime.datetime(day.year, day.month, day.day, tzinfo=UTC) < at + length:
            if FROM <= day < TO:
                days.add((day - EPOCH).days)
            day += datetime.timedelta(days=1)
    lines = ["BEGIN:VCALENDAR", "BEGIN:VEVENT", f"DTSTART;TZID={name}:{start.strftime(form)}",
             f"DTEND;TZID={name}:{end.strftime(form)}", "RRULE:" + ";".join(parts)]
    lines += [f"EXDATE;TZID={name}:{local.strftime(form)}" for local in excluded]
    return "\n".join(lines + ["END:VEVENT", "END:VCALENDAR", ""]), sorted(days)


def main():
    r = random.Random(5545)
    asked = [event(r) for _ in range(RULES)]
    zoned = []
    while len(zoned) < ZONED:
        one = zoned_event(r)
        zoned += [one] if one else []
    asked += zoned
    text = "".join(calendar + "====\n" for calendar, _ in asked)
    out = subprocess.run([sys.argv[1], str((FROM - EPOCH).days), str((TO - EPOCH).days)], input=text, text=True,
                         capture_output=True, check=True, timeout=250).stdout.split("\n")
    print("1..2")
    bad = 0
    for (calendar, want), line in zip(asked, out):
        got = [] if line.startswith("error") else [int(n) for n in line.split()]
        if got != want or line.startswith("error"):
            bad += 1
            if bad <= 3:
                print("# " + calendar.replace("\n", "\n# ") + f"\n# {line[:100]}"
                      f"\n# missing {sorted(set(want) - set(got))[:5]} surplus {sorted(set(got) - set(want))[:5]}")
    found = sum(1 for _, want in asked if want)
    print(f"{'not ' if bad or found < RULES / 2 else ''}ok 1 - {len(asked)} rules select the days that dateutil selects")
    if not icalendar:
        print("ok 2 - icalendar reads the calendars # SKIP python3-icalendar is not installed")
        return
    unread = sum(1 for calendar, _ in asked[:RULES] if not icalendar.Calendar.from_ical(calendar).walk("VEVENT"))
    print(f"{'not ' if unread else ''}ok 2 - icalendar reads the calendars")


main()
