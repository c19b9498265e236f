"""Before anything is spent: shares of the budget, forecasts of the errors, stand-ins, and joint disclosure by several releases."""
