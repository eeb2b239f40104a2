module mirror-overlay

go 1.24
