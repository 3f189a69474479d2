"""What do I do now? Planners over any dynamics and any cost, in whatever coordinates they are given."""
