//! A discrete-event machine that runs `pageset-core` on virtual CPUs in virtual time.
