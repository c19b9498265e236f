"""The only readers of records: files, databases and dataframes go in, coded records and histograms come out."""
