"""What is true of the world: instance types, operator releases, add-ons, images, models. Pure data, each with its source."""
