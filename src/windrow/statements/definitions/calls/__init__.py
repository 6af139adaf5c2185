"""Where SQL functions over windows are called, and the text in which Windrow can answer them there."""
