"""What the accuracy experiments share: streams over external data, measured engines, results on disk."""
