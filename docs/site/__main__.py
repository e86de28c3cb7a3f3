"""Writes the pages of the site, and the configuration that MkDocs builds it by: `python -m docs.site BUILD FOLDER`."""
import json
import pathlib
import sys

from docs.site.pages import Site, navigation

ROOT = pathlib.Path(__file__).parents[2]


def main(build: str, folder: str) -> None:
    site, target = Site(ROOT, pathlib.Path(build).resolve()), pathlib.Path(folder).resolve()
    site.write(target / "pages")
    configuration = {"INHERIT": str(ROOT / "docs/site/mkdocs.yml"), "docs_dir": str(target / "pages"), "site_dir": str(target / "html"), "nav": navigation(site)}
    (target / "mkdocs.yml").write_text(json.dumps(configuration, indent=1))  # YAML, too
    print(f"{len(site.pages)} pages in {target / 'pages'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
