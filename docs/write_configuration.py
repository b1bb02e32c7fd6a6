#!/usr/bin/env python3
"""Write docs/configuration.md: every key with its default, what may be written, and its effect.

Keys, defaults and what is allowed come from the schema that the workflow checks a configuration
with, the effects from config/README.md. With --check nothing is written; the exit code says
whether the page is up to date.
"""

import re
import sys
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parent.parent
PAGE = CHECKOUT / "docs/configuration.md"

BEGINNING = """\
# Every key of the configuration

<!-- made by `python docs/write_configuration.py` from workflow/schemas/config.schema.yaml and
     config/README.md: change those -->

A configuration is a YAML file with the values that differ from `config/config.yaml`; a key `a.b` of
the tables is `b` in the section `a`:

```yaml
reference: my_genome.fa.gz
samples: my_samples.tsv
seeds:
  queries: my_primers.fa
  mismatches: 2
```

```sh
snakemake --configfile my_config.yaml
```

Keys that are left out keep the values of `config/config.yaml`, and those that are left out there
have the defaults below. On the command line, `--config backend=cpu` sets a single top-level
key, and `--config 'map={match: 2, hic: true}'` some of a section.
An unknown key or an invalid value is reported with its file and line before anything runs.
[The sample sheet](../config/README.md#the-sample-sheet) is a table of its own.
"""


def main():
    text = page()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PAGE.read_text() == text else f"{PAGE} is old: python {Path(__file__).name}")
    PAGE.write_text(text)


def page() -> str:
    schema = yaml.safe_load((CHECKOUT / "workflow/schemas/config.schema.yaml").read_text())
    readme = (CHECKOUT / "config/README.md").read_text()
    effects = dict(re.findall(r"^\| `([\w.]+)` \|.*?\| (.*) \|$", readme, re.MULTILINE))
    titles = dict(re.findall(r"^### `(\w+)`: (.*)$", readme, re.MULTILINE))
    top = {key: rule for key, rule in schema["properties"].items() if "properties" not in rule}
    parts = [BEGINNING, table("", top, schema, effects)]
    for key, rule in schema["properties"].items():
        if "properties" in rule:
            parts += [
                f"## `{key}`: {titles[key]}\n",
                table(f"{key}.", rule["properties"], rule, effects),
            ]
    return "\n".join(parts)


def table(before: str, properties: dict, section: dict, effects: dict) -> str:
    lines = ["| key | default | value | effect |", "|---|---|---|---|"]
    for key, rule in properties.items():
        default = "required" if key in section.get("required", ()) else "none"
        if "default" in rule:
            default = f"`{shown(rule['default'])}`"
        effect = effects[before + key]
        lines.append(f"| `{before}{key}` | {default} | {rule['write']} | {effect} |")
    return "\n".join(lines) + "\n"


def shown(value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


if __name__ == "__main__":
    main()
