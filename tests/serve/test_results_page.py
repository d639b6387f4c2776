"""The page of results is written once, and again after an experiment was scored."""

from ifqa.report import html_page


def test_results_are_written_again_only_after_a_change(web, tmp_path, monkeypatch):
    written = []

    def page(root, served):
        written.append((root, served))
        return f"<p>results {len(written)}"

    monkeypatch.setattr(html_page, "results_page", page)
    first = web.get("/results")
    assert (first.text, first.headers["content-security-policy"]) == ("<p>results 1", "frame-ancestors 'none'")
    assert web.get("/results").text == first.text
    (tmp_path / "experiments/mine/score").mkdir(parents=True)
    (tmp_path / "experiments/mine/score/manifest.json").touch()
    assert web.get("/results").text == "<p>results 2"
    (tmp_path / "experiments/RESULTS.jsonl").touch()
    assert web.get("/results").text == "<p>results 3"
    assert written == [(tmp_path, True)] * 3
