"""Can two models that never met be translated into each other? Takes plain arrays, so it judges anyone's models."""
