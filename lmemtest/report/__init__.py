"""From results to a document, and from a document to HTML, text, markdown or LaTeX.

`analysis` computes; `wording`, `methods`, `sections` and `answers` say what is told and where, templates/*.j2 in which
words (`prose` fills them in); `document` says what blocks there are, `render` writes them, `files` saves any result.
No renderer computes a statistic, and nothing that computes one knows a renderer.
"""
