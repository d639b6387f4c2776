"""The page to ask on, served as it is: index.html, page.css, page.js and icon.svg, and the colours of ifqa/report."""
