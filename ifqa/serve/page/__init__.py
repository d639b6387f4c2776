"""The page to ask on: index.html, page.css, page.js and icon.svg, served as they are; its colours are in ifqa/report/colours.css."""
