# Log-likelihoods and likelihood ratios by survival::clogit, written to numbers.json beside this script.
# Rscript make_numbers.R   (R 4.2, survival 3.4)
library(survival)

exactly <- coxph.control(eps = 1e-13, toler.chol = 1e-14, iter.max = 60)
fitted <- function(terms, data)
  clogit(as.formula(paste("chosen ~", paste(terms, collapse = " + "), "+ strata(id)")), data = data,
         method = "exact", control = exactly)$loglik[2]
# The terms that are always in, then every group of terms that is tested.
numbers <- function(name, always, groups, data) {
  full <- fitted(c(always, unlist(groups)), data)
  ratios <- sapply(names(groups), function(g) 2 * (full - fitted(c(always, unlist(groups[names(groups) != g])), data)))
  lines <- c(sprintf('    "log_likelihood": %.10f', full), sprintf('    "%s": %.10f', names(groups), ratios))
  sprintf('  "%s": {\n%s\n  }', name, paste(lines, collapse = ",\n"))
}

travel <- read.csv("travel_mode.csv")
travel <- data.frame(travel[c("wait", "vcost", "travel", "gcost")], chosen = as.integer(travel$choice == "yes"), id = travel$individual,
                     mode = travel$mode, income = travel$income)
for (m in c("air", "bus", "car", "train")) travel[[m]] <- as.integer(travel$mode == m)
for (m in c("air", "bus", "car")) travel[[paste0("income_", m)]] <- travel$income * travel[[m]]
for (m in c("air", "bus", "car", "train")) travel[[paste0("vcost_", m)]] <- travel$vcost * travel[[m]]
constants <- c("air", "bus", "car")
income <- paste0("income_", constants)
# No car for the poorer travellers, and no plane for those to whom it takes more than two hours, unless they took it.
possible <- travel$chosen == 1 | !((travel$car == 1 & travel$income < 20) | (travel$air == 1 & travel$travel > 120))
# No bus for those with an income above 40, unless they took it.
with_bus <- travel$chosen == 1 | !(travel$bus == 1 & travel$income > 40)

metro <- read.csv(gzfile("swissmetro.csv.gz"))
modes <- c("car", "metro", "train")
metro$headway_car <- 0
long <- do.call(rbind, lapply(modes, function(m) data.frame(
  id = seq_len(nrow(metro)), mode = m, chosen = as.integer(metro$choice == m), minutes = metro[[paste0("minutes_", m)]],
  francs = metro[[paste0("francs_", m)]], headway = metro[[paste0("headway_", m)]],
  available = metro[[paste0("available_", m)]])))
long <- long[long$available == 1, ]
for (m in modes) long[[m]] <- as.integer(long$mode == m)

shared <- list(wait = "wait", vcost = "vcost", travel = "travel", gcost = "gcost")
writeLines(c("{", paste(c(
  numbers("travel", constants, c(list(income = income), shared), travel),
  numbers("travel available", constants, c(list(income = income), shared), travel[possible, ]),
  numbers("travel without bus", constants, c(list(income_air = "income_air"), shared), travel[with_bus, ]),
  numbers("travel specific", constants, c(list(vcost = paste0("vcost_", modes <- c("air", "bus", "car", "train"))),
                                          shared[c("wait", "travel")]), travel),
  numbers("travel without names", character(0), shared, travel),
  numbers("swissmetro", c("car", "metro"), list(minutes = "minutes", francs = "francs"), long),
  numbers("swissmetro headway", c("car", "metro"), list(minutes = "minutes", francs = "francs", headway = "headway"), long)
), collapse = ",\n"), "}"), "numbers.json")
