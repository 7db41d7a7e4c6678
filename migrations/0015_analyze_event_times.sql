-- online
-- Without it the planner takes the new columns for filled, and would look up the events of years one by one.
analyze inbox.progress;
