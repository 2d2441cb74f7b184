"""Every source becomes torch.export's ExportedProgram; one module a kind of source."""
