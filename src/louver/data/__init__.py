"""The only readers of records: files, databases and dataframes in, coded records and histograms out."""
