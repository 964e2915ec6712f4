"""What questions need to know of a table, and what tables say of it: subspaces of nested levels."""
