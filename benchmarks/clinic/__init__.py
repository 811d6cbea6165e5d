"""The clinic: failures that cost people weeks, each as a sick and a healthy twin, and whether the
doctor tells them apart."""
