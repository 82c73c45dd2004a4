//! Rows, tables and exports of pageset results.
