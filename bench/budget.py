"""One line per budget, the same from every benchmark; ./dev bench gathers them into a table at the end."""


def budget(what, value, most, unit):
    """Prints whether it is kept; `most` is the budget."""
    kept = "kept" if value <= most else "MISSED"
    print(f"budget: {what}: {value:.4g} {unit}, at most {most:g}: {kept}", flush=True)
