"""The files of the site for programs: JSON, OSV, feeds, badges, texts; and the data in pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kbtools.articles.data_files import contents
from kbtools.doctor import bundle
from kbtools.site.data import api, badges, feeds, notices, osv, shelves, texts
from kbtools.site.model import SiteModel, data_file_path


def files(model: SiteModel, pages: Iterable[str] = ()) -> Iterator[tuple[str, bytes]]:
    """Every finished file, by its path in the site; `pages` are the paths of those in the tree."""
    yield from api.files(model)
    yield from shelves.files(api.signatures(model))
    for view in model.views:
        record = osv.record(model, view)
        if record:
            yield osv.path(view), api.encoded(record)
    yield from notices.files(model)
    yield from feeds.files(model)
    yield from badges.files(model)
    yield from texts.files(model)
    yield from data_files(model)
    yield from doctor_file(model)
    yield from texts.sitemaps(model, pages)


def data_files(model: SiteModel) -> Iterator[tuple[str, bytes]]:
    """The data files that snippets name, for whoever downloads a snippet.

    Raises:
        DataFileError: a file has changed since the articles were read.
    """
    snippets = [snippet for view in model.linked.values() for snippet in view.article.snippets]
    digests = {name: digest for s in snippets for name, digest in s.data_files.items()}
    for name, content in contents(model.config, digests).items():
        yield data_file_path(name), content


def doctor_file(model: SiteModel) -> Iterator[tuple[str, bytes]]:
    """The probes as one program, if the knowledge base has any.

    Raises:
        BundleError: a file of probes cannot be imported, or is about an article that is not there.
    """
    probes = bundle.probes_of(model.config)
    if probes:
        yield bundle.FILE, bundle.build(model.config, probes)
