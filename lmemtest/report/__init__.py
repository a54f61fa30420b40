"""From results to a document, and from a document to HTML, text or markdown.

`analysis` computes, `wording` and `sections` put results into words and blocks, `document` says what blocks there
are, `html` and `text` render them. No renderer computes a statistic, and nothing that computes one knows a renderer.
"""
