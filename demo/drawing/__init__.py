"""How the demo's pictures and videos are drawn; `demo.draw` is the front door."""
