"""Before anything is spent: shares of the budget, forecasts of the errors, stand-ins, and what several releases disclose together."""
