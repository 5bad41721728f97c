"""The parts of the page Arena: what competes, the job, the leaderboard."""
