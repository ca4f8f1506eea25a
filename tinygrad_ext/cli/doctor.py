"""`plugins doctor`: what is wrong with the installed plugins, where, and what to do about it."""

import importlib.util
import platform
import re
import signal
from pathlib import Path

import tinygrad_ext
from tinygrad_ext import hookspecs
from tinygrad_ext.cli.probe import probe
from tinygrad_ext.cli.show import dump, facts, note
from tinygrad_ext.extension import elf, loading
from tinygrad_ext.plugins import child, fence, table, undeclared

DISABLED = "disabled"
_PROVIDED = ("ops", "modules", "overrides", "devices", "dtypes")


def run(names, *, timeout, as_json):
    """Examine plugins and print the report. Returns 1 when something is wrong."""
    chosen = [p for name in names for p in table.select(name)] if names else table.everything()
    reports = [examine(p, timeout, named=bool(names)) for p in dict.fromkeys(chosen)]
    _compare(reports)
    reports += [] if names else [_of_undeclared(u) for u in undeclared.find() if u.sure]
    wrong = [r for r in reports if r["problems"]]
    if as_json:
        dump({"versions": versions(), "plugins": reports, "ok": not wrong})
    else:
        told = {}
        for r in reports:
            _print(r, told)
        note(", ".join(f"{what} {version}" for what, version in versions().items()))
        print(f"plugins examined: {len(reports)}; with problems: {len(wrong)}")
    return int(bool(wrong))


def versions():
    """Versions that a report of a fault should name."""
    import numpy

    return {
        "tinygrad_ext": tinygrad_ext.__version__,
        "plugin API": ".".join(map(str, hookspecs.API_VERSION)),
        "table": loading.version_here(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
    }


def examine(plugin, timeout, named=False):
    """The report on one plugin; a disabled one is looked at when it was named."""
    report = {
        "name": plugin.name,
        "distribution": plugin.owner.distribution,
        "version": plugin.owner.version or "",
        "location": plugin.location,
        "entry_points": plugin.entry_points,
        "state": "loaded",
        "problems": [],
    }
    state, reason = table.why_not(plugin) or (None, "")
    if state == DISABLED and not named:
        return {**report, "state": DISABLED, "reason": reason}
    if state not in (None, DISABLED):
        report["problems"].append(_problem(state, reason))
        return {**report, "state": state}
    result = probe(plugin, timeout)
    report["state"] = result["end"]
    if result["end"] != "loaded":
        report["problems"].append(_ended(plugin, result, timeout))
    report["problems"] += _missing(plugin)
    report["libraries"] = _libraries(plugin, report["problems"])
    if result["report"]:
        keys = (*_PROVIDED, "methods", "requires_api")
        report |= {key: result["report"][key] for key in keys}
        report |= _times(plugin, result)
    report["output"] = result["output"]
    return report


def _of_undeclared(u):
    return {
        "name": u.distribution,
        "distribution": u.distribution,
        "version": u.version,
        "location": "",
        "entry_points": (),
        "state": "undeclared",
        "problems": [_problem("entry point", u.text)],
    }


def _problem(kind, cause, line="", way_out="", traceback=""):
    return {"kind": kind, "cause": cause, "line": line, "way_out": way_out, "traceback": traceback}


def _ended(plugin, result, timeout):
    """The problem of a plugin that did not load, or did and then harmed its process."""
    report, status, end = result["report"], result["status"], result["end"]
    if end == "failed":
        failure = report["failure"]
        hook = "while it was imported" if failure["hook"] == "import" else f"in its hook {failure['hook']}"
        return _problem(
            report["state"], f"{failure['error']} ({hook})", failure["line"], report["way_out"], failure["traceback"]
        )
    when = "when the process ended, after it had been loaded" if report else "while it was loaded"
    disable = f"TINYGRAD_EXT_DISABLE_PLUGINS={plugin.name}"
    renew = f"python -m pip install --force-reinstall --no-cache-dir {plugin.owner.distribution}"
    if end == "hang":
        cause = f"it did not come to an end in {timeout:g} seconds, {when}"
        way_out = f"raise --timeout if it is only slow; else tell its author, or {disable}"
    elif end == "flood":
        cause = f"it printed more than {child.LIMIT >> 20} MB, {when}, and was ended for that"
        way_out = f"tell its author, or {disable}"
    elif end == "crash":
        name = signal.Signals(-status).name if -status in list(signal.Signals) else f"signal {-status}"
        cause = f"it crashed the process ({name}) {when}"
        way_out = f"{renew} (its compiled part may be of another Python or NumPy); else tell its author, or {disable}"
    else:
        cause = f"it ended the process with status {status} {when}"
        way_out = f"tell its author that a plugin must not call os._exit, or {disable}"
    return _problem(end, cause, _line(plugin, result["fault"]), way_out, result["fault"])


def _line(plugin, fault):
    """'file:line: text' of the innermost frame in the plugin's own files, of a text of faulthandler."""
    folders = _folders(plugin)
    for file, line in re.findall(r'^  File "(.+)", line (\d+)', fault, re.M):
        if any(Path(file).resolve().is_relative_to(folder) for folder in folders):
            return fence.place(file, int(line))
    return ""


def _folders(plugin):
    """Folders and files of the plugin's top-level modules; none of them is imported."""
    found = []
    for top in plugin.packages:
        try:
            spec = importlib.util.find_spec(top)
        except (ImportError, ValueError):
            continue
        if spec is not None:
            places = spec.submodule_search_locations or [spec.origin]
            found += [Path(place).resolve() for place in places if place]
    return found


def _libraries(plugin, problems):
    """{file: table that it needs} of the compiled extensions in a plugin; what does not suit ours is a problem."""
    found = {}
    for folder in _folders(plugin):
        for path in sorted(folder.rglob("*.so")) if folder.is_dir() else ():
            try:
                _, major, minor, _ = elf.exported(path)
            except OSError:  # a module of Python
                continue
            except ImportError as error:
                problems.append(_problem("library", str(error)))
                continue
            found[str(path)] = f"{major}.{minor}"
            try:
                loading.check(path)
            except ImportError as error:
                problems.append(_problem("library", str(error)))
    return found


def _missing(plugin):
    """Problems of what the distribution says it needs: not installed, or of another version."""
    from importlib import metadata

    from packaging.requirements import InvalidRequirement, Requirement

    try:
        needed = metadata.distribution(plugin.owner.distribution).requires or []
    except metadata.PackageNotFoundError:
        return []
    found = []
    for text in needed:
        try:
            r = Requirement(text)
        except InvalidRequirement as error:
            found.append(_problem("dependency", f"its requirement '{text}' cannot be read: {error}"))
            continue
        if r.marker is not None and not r.marker.evaluate({"extra": ""}):
            continue
        have = _version(r.name)
        if have is None or not r.specifier.contains(have, prereleases=True):
            is_there = "which is not installed" if have is None else f"and version {have} is installed"
            wanted = f"{r.name}{r.specifier}"
            found.append(
                _problem("dependency", f"it needs {wanted}, {is_there}", way_out=f"python -m pip install '{wanted}'")
            )
    return found


def _version(distribution):
    from importlib import metadata

    if distribution.replace("-", "_").lower() == "tinygrad_ext":  # it runs, installed or from its source
        return tinygrad_ext.__version__
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _times(plugin, result):
    """Milliseconds of the load: all, and without the modules of others that it was the first to import."""
    total, others = result["report"]["milliseconds"], {}
    for module, ms in result["imports"]:
        if not plugin.owns(module):
            top = module.partition(".")[0]
            others[top] = others.get(top, 0.0) + ms
    slowest = sorted(others.items(), key=lambda item: -item[1])[:3]
    return {
        "milliseconds": round(total, 1),
        "own_milliseconds": round(max(total - sum(others.values()), 0.0), 1),
        "slowest_imports": {top: round(ms, 1) for top, ms in slowest},
    }


def _compare(reports):
    """Note what two plugins both register: whichever is loaded second would be left out."""
    owners = {}
    for r in reports:
        for kind in (*_PROVIDED, "methods"):
            for name in r.get(kind, ()):
                owners.setdefault(name, []).append(r)
    for name, both in owners.items():
        for r in both if len(both) > 1 else ():
            others = " and ".join(f"{o['distribution']} {o['version']}".strip() for o in both if o is not r)
            way_out = f"uninstall or disable one of them: TINYGRAD_EXT_DISABLE_PLUGINS={r['distribution']}"
            r["problems"].append(_problem("conflict", f"{name} is registered by {others} too", way_out=way_out))


def _print(r, told):
    """Print a report. told: causes that were printed -> whose; two plugins in conflict have the same."""
    rows = [
        ("reason", r.get("reason", "")),
        ("from", r["location"]),
        *(("entry point", e) for e in r["entry_points"]),
        ("requires API", r.get("requires_api") or ""),
        *(("library", f"{Path(path).name}, for table {abi}") for path, abi in r.get("libraries", {}).items()),
        ("provides", ", ".join(name for kind in _PROVIDED for name in r.get(kind, ()))),
    ]
    if "milliseconds" in r:
        slowest = ", ".join(f"{top} {ms:g}" for top, ms in r["slowest_imports"].items())
        times = f"{r['own_milliseconds']:g} ms its own, {r['milliseconds']:g} ms in all"
        rows.append(("import", times + (f" (slowest of others: {slowest})" if slowest else "")))
    for p in r["problems"]:
        first = told.setdefault(p["cause"], r["distribution"])
        cause = p["cause"] if first == r["distribution"] else f"the one told of {first}"
        rows += [("problem", f"{p['kind']}: {cause}"), ("line", p["line"]), ("way out", p["way_out"])]
    if r["problems"] and r.get("output"):
        rows.append(("printed", r["output"].splitlines()[-1]))
    facts(f"plugin '{r['name']}' of {r['distribution']} {r['version']}: {r['state']}", rows)
    print()
