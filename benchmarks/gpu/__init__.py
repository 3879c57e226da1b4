"""What a GPU does with stmlang, by one command: numbers judged, programs timed, a report. `make gpu` runs it."""
