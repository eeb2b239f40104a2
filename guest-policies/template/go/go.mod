module website-policy

go 1.24
