"""Methods side by side on systems with a known answer. A method or a system joins by a small file of its own."""
