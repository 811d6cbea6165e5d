"""What training gathers for the doctor."""
