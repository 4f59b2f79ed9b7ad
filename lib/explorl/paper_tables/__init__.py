"""The papers' reported numbers, one YAML file per paper; read by :mod:`explorl.report.paper`."""
