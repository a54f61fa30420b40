"""From results to a document, and from a document to HTML, text or markdown.

`analysis` computes; `wording`, `methods` and `sections` say what is told and where, templates/*.j2 in which words
(`prose` fills them in); `document` says what blocks there are, and `render` writes them. No renderer computes a
statistic, and nothing that computes one knows a renderer.
"""
