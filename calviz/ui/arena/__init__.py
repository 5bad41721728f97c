"""The parts of the page Arena: the contestants, the job, the leaderboard."""
