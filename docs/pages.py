"""What the documentation site is made of besides `docs/`: the repository's other texts, and the reference.

A hook of mkdocs (`make docs`). Links between Markdown files are those of the repository, so that they work
in a checkout too; here they become links of the site, and mkdocs refuses the ones that lead nowhere.
"""

import ast
import posixpath
import re
from pathlib import Path

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
TEXTS = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "changelog.d/README.md",
    "SECURITY.md",
    "experiments/README.md",
    "experiments/results/*.md",
    "experiments/results/*.png",
    "benchmarks/README.md",
    "benchmarks/results/*.md",
    "benchmarks/results/*.png",
    "onlineic/datasets/README.md",
)
SEVERAL = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)+): (.*\n(?: {8}.*\n)*)", re.MULTILINE)
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#\s])")
SITE = {"README.md": "index.md"}  # where a text of the repository stands on the site, if not at its own path


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages of the reference beside the guides."""
    pages = [{"onlineic": "reference/top.md"}, *({wing: f"reference/{wing}.md"} for wing in wings())]
    for entry in config.nav or []:
        if entry == {"Reference": "reference/index.md"}:
            entry["Reference"] = ["reference/index.md", *pages]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the texts that stand outside `docs/`, and one page of reference a wing."""
    for pattern in TEXTS:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, SITE.get(name, name), abs_src_path=str(path)))
    for wing in wings():
        files.append(File.generated(config, f"reference/{wing}.md", content=reference(wing)))
    listed = "\n".join(f"* [onlineic.{wing}]({wing}.md): {first_line(wing)}" for wing in wings())
    files.append(
        File.generated(
            config,
            "reference/index.md",
            content="# Reference\n\nEvery public name, from its docstring. The names of the first page are "
            "also reached from the top: `import onlineic as ic`, `ic.OnlineIC`.\n\n"
            f"* [onlineic](top.md): {top_names()}\n{listed}\n",
        )
    )
    top = page("onlineic", ROOT / "onlineic" / "__init__.py")
    files.append(File.generated(config, "reference/top.md", content=top))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn a link of the repository into one of the site."""
    here = page.file.src_uri
    if here.startswith("reference/"):
        return markdown
    back = {site: name for name, site in SITE.items()}
    origin = back.get(here, here if (ROOT / here).is_file() and here not in own_texts() else f"docs/{here}")

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[1]))
        site = SITE.get(target, target.removeprefix("docs/"))
        return posixpath.relpath(site, posixpath.dirname(here) or ".")

    return LINK.sub(moved, markdown)


def own_texts() -> set[str]:
    """Return the names of the texts of `docs/`, from there."""
    return {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}


def wings() -> list[str]:
    """Return the names of the public modules and folders of the package."""
    found = (path for path in (ROOT / "onlineic").iterdir() if not path.name.startswith("_"))
    return sorted(path.stem for path in found if path.is_dir() or path.suffix == ".py")


def source(wing: str) -> Path:
    """Return the file that shows what a wing offers."""
    folder = ROOT / "onlineic" / wing
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def first_line(wing: str) -> str:
    """Return the first line of a wing's docstring."""
    return (ast.get_docstring(ast.parse(source(wing).read_text("utf-8"))) or "").partition("\n")[0]


def names_of(path: Path) -> list[str]:
    """Return the classes and functions that a face hands on, or that a module defines: no constants."""
    names = []
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("onlineic"):
            names += [alias.asname or alias.name for alias in node.names]
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.append(node.name)
    return [name for name in names if not name.startswith("_") and not name.isupper()]


def top_names() -> str:
    """Return the names of the top, as one sentence."""
    return ", ".join(f"`{name}`" for name in names_of(ROOT / "onlineic" / "__init__.py")) + "."


def reference(wing: str) -> str:
    """Return the page of a wing."""
    return page(f"onlineic.{wing}", source(wing))


def page(module: str, face: Path) -> str:
    """Return the page of a module's public names; mkdocstrings fills it from the docstrings."""
    members = ", ".join(names_of(face))
    return (
        f"# {module}\n\n::: {module}\n    options:\n      show_root_heading: false\n"
        f"      show_root_toc_entry: false\n      members: [{members}]\n"
    )


def one_by_one(text: str) -> str:
    """Return a docstring in which an entry of several names, `low, high: Ends.`, stands once for each."""
    return SEVERAL.sub(lambda one: "".join(f"    {name}: {one[2]}" for name in one[1].split(", ")), text)


class Signatures(griffe.Extension):
    """Every argument has its entry: of classes those they are made with; protocols, never made, have none."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Give each argument an entry of its own."""
        if obj.docstring:
            obj.docstring.value = one_by_one(f"{obj.docstring.value}\n")

    def on_class(self, *, cls: griffe.Class, **_: object) -> None:
        """Drop the `__init__` that a protocol has from the library, and what attrs says of its own."""
        made = cls.members.get("__init__")
        if made is None:
            return
        if made.is_alias:
            del cls.members["__init__"]
        elif made.docstring and made.docstring.value.startswith("Method generated by attrs"):
            made.docstring = None
