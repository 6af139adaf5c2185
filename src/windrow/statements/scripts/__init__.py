"""SQL scripts with windows: their statements run one by one."""
