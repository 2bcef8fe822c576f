//! Nothing: the manifest beside this names packages, and that is all it is for.
