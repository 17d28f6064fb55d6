"""Parts of networks replaced by decoupled models: found, sampled, fitted, trained on and measured, with torch."""
